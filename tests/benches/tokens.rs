//! Bench: counting the tokens of texts, estimated by script and with a vocabulary, and how far the two are apart.
//!
//! `CHORUS_TEXTS` is a directory of texts (`*.txt`), one kind of text in each; without it, a page of this repository is
//! measured.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use chorus_llm::tokenizer::{Tokenizer, TokenizerCache};
use chorus_session::token_estimate::tokens_of_text;
use chorus_tests::measure::use_realtime_scheduler;

const ROUNDS: usize = 20;

#[expect(clippy::print_stdout, reason = "the figures are what a bench is for")]
fn main() {
    use_realtime_scheduler();
    let began = Instant::now();
    let Some((tokenizer, _)) = TokenizerCache::default().load() else { return };
    println!("loading the vocabulary: {:.0} ms", began.elapsed().as_secs_f64() * 1e3);
    let mut errors = Vec::new();
    for (name, text) in texts() {
        let (exact, estimate, length) = (tokenizer.count(&text), tokens_of_text(&text), text.len() as f64);
        let error = |tokens: f64| 100.0 * (tokens / exact.max(1) as f64 - 1.0);
        let estimating = megabytes_per_second(&text, tokens_of_text);
        let counting = megabytes_per_second(&text, |text| count(&tokenizer, text));
        println!(
            "{name:24} {exact:7} tokens; estimate {:+4.0} %, bytes / 4 {:+4.0} %, characters / 4 {:+4.0} %; \
             {estimating:5.0} and {counting:4.0} MB/s",
            error(estimate as f64),
            error(length / 4.0),
            error(text.chars().count() as f64 / 4.0),
        );
        errors.push(error(estimate as f64).abs());
    }
    println!("mean error of the estimate: {:.1} %", errors.iter().sum::<f64>() / errors.len().max(1) as f64);
}

fn count(tokenizer: &Tokenizer, text: &str) -> u64 {
    tokenizer.count(text)
}

fn texts() -> Vec<(String, String)> {
    let Some(dir) = std::env::var_os("CHORUS_TEXTS") else {
        return vec![("docs/PROTOCOL.md".into(), include_str!("../../docs/PROTOCOL.md").into())];
    };
    let mut texts: Vec<_> = std::fs::read_dir(Path::new(&dir))
        .expect("a directory")
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((path.file_stem()?.to_string_lossy().into_owned(), std::fs::read_to_string(&path).ok()?))
        })
        .collect();
    texts.sort();
    texts
}

/// The speed of the median round.
fn megabytes_per_second(text: &str, count: impl Fn(&str) -> u64) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            black_box(count(black_box(text)));
            began.elapsed().as_secs_f64()
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    text.len() as f64 / 1e6 / rounds[ROUNDS / 2]
}
