//! P20: tests every kind of secret in every context in which one was found to survive, as a whole text and in pieces.

mod contexts;
pub(crate) mod kind_samples;
mod secrets_md;

use std::collections::BTreeMap;
use std::sync::Arc;

use chorus_base::Secret;

use self::contexts::contexts;
use self::kind_samples::{Sample, own, samples};
use super::Redactor;
use super::patterns::PATTERNS;

/// Bytes of a key block without a first line that may be passed on before it is recognised: one line.
const MAX_HEADLESS_START: usize = 65;

/// Length of the shortest piece of a secret that must not survive.
const SURVIVING_BYTES: usize = 12;

fn redactor() -> Arc<Redactor> {
    let redactor = Arc::new(Redactor::new(|| [7; 32]));
    redactor.add_own_key(&Secret::new(kind_samples::OWN_KEY.into()));
    redactor
}

/// Returns whether a piece of `hidden` is in `clean`.
fn survives(hidden: &str, clean: &str) -> bool {
    hidden.as_bytes().windows(SURVIVING_BYTES).any(|piece| memchr::memmem::find(clean.as_bytes(), piece).is_some())
}

/// Reproducible pseudo-random numbers.
struct PseudoRandom(u64);

impl PseudoRandom {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// Returns how often the combination with this number is tried in pieces: one in ten is, or each twice with
/// `CHORUS_FAULTS=all`.
fn streams(number: usize) -> u64 {
    match std::env::var_os("CHORUS_FAULTS").is_some_and(|which| which == "all") {
        true => 2,
        false => u64::from(number % 10 == 3),
    }
}

/// Redacts `text` in pieces of a few bytes, or of many.
fn streamed(redactor: &Arc<Redactor>, text: &str, seed: u64) -> String {
    let mut chance = PseudoRandom(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let longest = [2, 8, 40, 200][chance.below(4)];
    let (mut flow, mut bytes, mut written) = (redactor.stream(), redactor.stream(), Vec::new());
    let (mut out, mut rest) = (String::new(), text);
    while !rest.is_empty() {
        let count = 1 + chance.below(longest);
        let end = rest.char_indices().map(|(at, _)| at).nth(count).unwrap_or(rest.len());
        out.push_str(&flow.push(rest[..end].to_owned()));
        bytes.push_bytes(&rest.as_bytes()[..end], &mut written);
        rest = &rest[end..];
    }
    out.push_str(&flow.finish(false));
    bytes.finish_bytes(false, &mut written);
    assert_eq!(out.as_bytes(), written, "text and bytes come to the same");
    out
}

#[test]
fn no_secret_of_any_kind_survives_in_any_place() {
    let redactor = redactor();
    let (samples, contexts) = (samples(), contexts());
    assert!(contexts.len() >= 55, "only {} contexts", contexts.len());
    let mut survivors: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut tried, mut differ) = (0_usize, Vec::new());
    for (number, sample) in samples.iter().enumerate() {
        let alone = redactor.redact_text(&sample.text()).into_owned();
        for (context, place) in &contexts {
            let Some(text) = place(sample) else { continue };
            tried += 1;
            let clean = redactor.redact_text(&text).into_owned();
            if survives(&sample.hidden, &clean) {
                survivors
                    .entry(context.to_string())
                    .or_default()
                    .push(format!("{}: {text:?} became {clean:?}", sample.kind));
                continue;
            }
            let print = |text: &str| {
                text.split_once("[redacted:").and_then(|(_, rest)| Some(rest.split_once(':')?.1[..8].to_owned()))
            };
            if print(&clean) != print(&alone) {
                differ.push(format!("{context} {}: {text:?} became {clean:?} and not {alone:?}", sample.kind));
            }
            for seed in 0..streams(tried) {
                let streamed = streamed(&redactor, &text, (number * 1000) as u64 + seed + tried as u64);
                // The start of a key block without a first line is passed on, since it may be a word.
                let begun = sample.is_headless() && !survives(&sample.hidden[MAX_HEADLESS_START..], &streamed);
                if streamed != clean && !begun {
                    let entry = survivors.entry(format!("{context}, in pieces")).or_default();
                    entry.push(format!("{}: {text:?} became {streamed:?} and not {clean:?}", sample.kind));
                }
            }
        }
    }
    let count: usize = survivors.values().map(Vec::len).sum();
    let told: Vec<_> = survivors
        .iter()
        .map(|(context, all)| format!("{context} ({}): {}", all.len(), all[..all.len().min(4)].join("\n    ")))
        .collect();
    assert!(count == 0, "{count} of {tried} ({} samples):\n{}", samples.len(), told.join("\n"));
    assert!(
        differ.len() * 20 < tried,
        "{} of {tried} have another fingerprint:\n{}",
        differ.len(),
        differ[..differ.len().min(40)].join("\n")
    );
}

#[test]
fn every_shape_has_a_sample_that_it_finds() {
    let redactor = redactor();
    let samples = samples();
    for shape in PATTERNS {
        let fits = |sample: &&Sample| sample.kind == shape.kind && sample.text().contains(shape.prefix);
        assert!(samples.iter().any(|sample| fits(&sample)), "{} {}", shape.kind, shape.prefix);
    }
    for sample in &samples {
        let clean = redactor.redact_text(&sample.text()).into_owned();
        assert!(
            clean.contains(&format!("[redacted:{}:", sample.kind)),
            "{}: {} became {clean}",
            sample.kind,
            sample.text()
        );
    }
}

#[test]
fn the_keys_of_the_daemon_are_found_in_every_form_and_however_they_are_broken() {
    let redactor = redactor();
    let mut prints = std::collections::BTreeSet::new();
    let (mut tried, mut left) = (0_usize, Vec::new());
    for (form, text, line) in own() {
        let breaks = ["", "\n", "\r\n", "\\n", "\u{1b}[0m", "\u{1b}[K", "\u{1b}(B", "\\x1b[1m"];
        for between in if line { &breaks[..] } else { &breaks[..1] } {
            for at in (1..text.len()).step_by(if between.is_empty() { text.len() } else { 5 }) {
                let text = format!("see {}{between}{} there", &text[..at], &text[at..]);
                tried += 1;
                let clean = redactor.redact_text(&text).into_owned();
                let Some((_, rest)) = clean.split_once("[redacted:chorus-key:") else {
                    left.push(format!("{form}: {text:?} became {clean:?}"));
                    continue;
                };
                prints.insert(rest[..8].to_owned());
                // In the middle of a word, two letters may have been passed on.
                if streams(tried) == 0 {
                    continue;
                }
                let streamed = streamed(&redactor, &text, tried as u64);
                if !streamed.contains("[redacted:chorus-key:") || streamed.len() > clean.len() + 4 + between.len() {
                    left.push(format!("{form}, in pieces: {text:?} became {streamed:?} and not {clean:?}"));
                }
            }
        }
    }
    assert!(left.is_empty(), "{} of {tried}:\n{}", left.len(), left[..left.len().min(20)].join("\n"));
    assert_eq!(prints.len(), 1, "one key has one fingerprint");
}
