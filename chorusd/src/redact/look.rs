//! Looking at a place where a secret may begin.

use std::ops::Range;

use super::alphabet::alnum;
use super::bytes::Bytes;
use super::shapes::{Part, Rule, Shape};

/// Letters of a text at most that stands for a secret.
const LONGEST_PLACEHOLDER: usize = 80;

/// Bytes of a run by which it is decided whether it is a secret.
const DECIDES: usize = 2 << 10;

/// What stands at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// No secret.
    No,
    /// More must come before that can be told; what begins here may be one.
    Open(usize),
    /// This part of the text is one.
    Secret { part: Range<usize>, kind: &'static str },
}

/// The end of parts.
enum End {
    No,
    Open,
    At(usize),
}

/// Looks at `at`, where `shape` begins.
pub fn look(text: &Bytes<'_>, at: usize, shape: &Shape) -> Look {
    match shape.rule {
        Rule::By(look) | Rule::After(look) => look(text, at, shape.kind),
        Rule::One(_) | Rule::Parts(_) if !text.begins(at) => Look::No,
        Rule::One(_) | Rule::Parts(_) => {
            let from = at + shape.start.len();
            match follow(text, from, shape.parts()) {
                End::No => Look::No,
                End::Open => Look::Open(at),
                End::At(end) if random(&text.all[from..end]) => secret(at..end, shape.kind),
                End::At(_) => Look::No,
            }
        }
    }
}

/// Returns the end of `parts`, which begin at `from`.
fn follow(text: &Bytes<'_>, from: usize, parts: &[Part]) -> End {
    let mut end = from;
    for (number, part) in parts.iter().enumerate() {
        let last = number + 1 == parts.len();
        match part {
            Part::Text(letters) => {
                for letter in letters.bytes() {
                    match text.get(end) {
                        Some(found) if found == letter => end += 1,
                        None if !text.whole => return End::Open,
                        _ => return End::No,
                    }
                }
            }
            Part::Of { of, least, most, varies } => {
                let mut stop = text.run_of(end, of.has, (*least, *most), *varies);
                if text.open(stop) && stop - end < *least {
                    return End::Open;
                }
                if stop - end < *most && text.open(stop) && (*varies || text.undecided(stop)) {
                    return End::Open;
                }
                if let Some(Part::Text(next)) = parts.get(number + 1)
                    && text.gap(stop).is_some()
                    && !text.all[stop..].starts_with(next.as_bytes())
                {
                    // Broken before what must follow.
                    let more = text.run_of(end, of.has, (stop - end + 1, *most), false);
                    if text.open(more) {
                        return End::Open;
                    }
                    if text.all[more..].starts_with(next.as_bytes()) {
                        stop = more;
                    }
                }
                if last && *most == usize::MAX {
                    stop = end + trimmed(&text.all[end..stop]);
                }
                if stop - end < *least {
                    return End::No;
                }
                if last && *most < usize::MAX {
                    // A longer run is something else.
                    if text.undecided(stop) {
                        return End::Open;
                    }
                    if text.next(stop).is_some_and(alnum) {
                        return End::No;
                    }
                }
                end = stop;
            }
        }
    }
    End::At(end)
}

/// This part is a secret.
pub fn secret(part: Range<usize>, kind: &'static str) -> Look {
    Look::Secret { part, kind }
}

/// How much of `run` is the token: a full stop behind it is the sentence's, an underscore Markdown's.
pub fn trimmed(run: &[u8]) -> usize {
    let kept = run.len().saturating_sub(DECIDES);
    let end = &run[kept..];
    kept + end.iter().rposition(|byte| !matches!(byte, b'.' | b'-' | b'_')).map_or(0, |last| last + 1)
}

/// The beginning of a long run: whether it is a secret is told by that.
pub fn head(run: &[u8]) -> &[u8] {
    &run[..run.len().min(DECIDES)]
}

/// Whether it may have been made by chance: not `xxxxxxxx` or `your_token_here`. A word in a long one is there by chance.
pub fn random(bytes: &[u8]) -> bool {
    let bytes = head(bytes);
    let mut seen = [false; 256];
    bytes.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    let distinct = seen.iter().filter(|seen| **seen).count();
    let placeholder = ["your", "YOUR", "xxxx", "XXXX", "example", "placeholder"];
    let text = |what: &&str| memchr::memmem::find(bytes, what.as_bytes()).is_some();
    distinct >= 8 && (bytes.len() > LONGEST_PLACEHOLDER || !placeholder.iter().any(text))
}

/// How many digits there are; of a long run in its beginning.
pub fn digits(bytes: &[u8]) -> usize {
    head(bytes).iter().filter(|byte| byte.is_ascii_digit()).count()
}

/// What stands at `from`, at least so long.
pub fn run_from(text: &Bytes<'_>, from: usize, of: fn(u8) -> bool, least: usize, kind: &'static str) -> Look {
    let end = text.run_of(from, of, (least, usize::MAX), true);
    if text.open(end) {
        return Look::Open(from);
    }
    let fits = end - from >= least && random(&text.all[from..end]);
    if fits { secret(from..end, kind) } else { Look::No }
}
