//! Bench: searching for secrets in text without any, as a whole and streamed word by word.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use chorus_redact::Redactor;
use chorus_tests::measure::use_realtime_scheduler;

const ROUNDS: usize = 20;

#[expect(clippy::print_stdout, reason = "the figures are what a bench is for")]
fn main() {
    use_realtime_scheduler();
    let text = [include_str!("../../docs/PROTOCOL.md"), include_str!("../../chorusd/crates/engine/src/agent/actor.rs")]
        .concat();
    let kilobytes = text.len() as f64 / 1024.0;
    let redactor = Arc::new(Redactor::new(|| [1; 32]));
    let mut whole: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            assert_eq!(black_box(redactor.count_secrets(&text)), 0);
            began.elapsed().as_secs_f64() * 1e6 / kilobytes
        })
        .collect();
    let mut words: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let pieces: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
            let (count, mut flow) = (pieces.len(), redactor.stream());
            let began = Instant::now();
            for piece in pieces {
                drop(black_box(flow.push(piece)));
            }
            began.elapsed().as_secs_f64() * 1e6 / count as f64
        })
        .collect();
    whole.sort_by(f64::total_cmp);
    words.sort_by(f64::total_cmp);
    println!("plain text: {:.2} us per KB; word by word: {:.2} us a word", whole[ROUNDS / 2], words[ROUNDS / 2]);
}
