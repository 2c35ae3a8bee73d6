//! Matches a pattern at an offset where a secret may begin.

use std::ops::Range;

use super::alphabet::is_alnum;
use super::matcher_input::ViewText;
use super::pattern_types::{Pattern, PatternPart, PatternRule};

/// Largest size of a placeholder for a secret.
const MAX_PLACEHOLDER_BYTES: usize = 80;

/// Bytes at the start of a run that decide whether it is a secret.
const MAX_DECIDING_BYTES: usize = 2 << 10;

/// The result of a matcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Match {
    /// There is no secret.
    No,
    /// More text is needed to decide; a secret may begin at this offset.
    Incomplete(usize),
    /// The range `part` of the text is a secret.
    Secret { part: Range<usize>, kind: &'static str },
}

/// The end of a sequence of parts.
enum PartsEnd {
    No,
    Incomplete,
    At(usize),
}

/// Matches `shape`, whose prefix is at `at`.
pub(crate) fn match_pattern(text: &ViewText<'_>, at: usize, shape: &Pattern) -> Match {
    match shape.rule {
        PatternRule::Custom(look) | PatternRule::CustomAfter(look) => look(text, at, shape.kind),
        PatternRule::Single(_) | PatternRule::Parts(_) if !text.is_word_start(at) => Match::No,
        PatternRule::Single(_) | PatternRule::Parts(_) => {
            let from = at + shape.prefix.len();
            match match_parts(text, from, shape.parts()) {
                PartsEnd::No => Match::No,
                PartsEnd::Incomplete => Match::Incomplete(at),
                PartsEnd::At(end) if looks_random(&text.bytes[from..end]) => secret_match(at..end, shape.kind),
                PartsEnd::At(_) => Match::No,
            }
        }
    }
}

/// Matches `parts` from `from` on. Returns their end.
fn match_parts(text: &ViewText<'_>, from: usize, parts: &[PatternPart]) -> PartsEnd {
    let mut end = from;
    for (number, part) in parts.iter().enumerate() {
        let last = number + 1 == parts.len();
        match part {
            PatternPart::Text(envelopes) => {
                for envelope in envelopes.bytes() {
                    match text.get(end) {
                        Some(found) if found == envelope => end += 1,
                        None if !text.is_complete => return PartsEnd::Incomplete,
                        _ => return PartsEnd::No,
                    }
                }
            }
            PatternPart::Run { of, least, most, varies } => {
                let mut stop = text.bounded_run_end(end, of.contains, (*least, *most), *varies);
                if text.may_continue(stop) && stop - end < *least {
                    return PartsEnd::Incomplete;
                }
                if stop - end < *most && text.may_continue(stop) && (*varies || text.is_undecided(stop)) {
                    return PartsEnd::Incomplete;
                }
                if let Some(PatternPart::Text(next)) = parts.get(number + 1)
                    && text.gap(stop).is_some()
                    && !text.bytes[stop..].starts_with(next.as_bytes())
                {
                    // The text is broken before the next part.
                    let more = text.bounded_run_end(end, of.contains, (stop - end + 1, *most), false);
                    if text.may_continue(more) {
                        return PartsEnd::Incomplete;
                    }
                    if text.bytes[more..].starts_with(next.as_bytes()) {
                        stop = more;
                    }
                }
                if last && *most == usize::MAX {
                    stop = end + trimmed_len(&text.bytes[end..stop]);
                }
                if stop - end < *least {
                    return PartsEnd::No;
                }
                if last && *most < usize::MAX {
                    // A longer run is something else.
                    if text.is_undecided(stop) {
                        return PartsEnd::Incomplete;
                    }
                    if text.byte_after(stop).is_some_and(is_alnum) {
                        return PartsEnd::No;
                    }
                }
                end = stop;
            }
        }
    }
    PartsEnd::At(end)
}

/// Returns the match for a range.
pub(crate) fn secret_match(part: Range<usize>, kind: &'static str) -> Match {
    Match::Secret { part, kind }
}

/// Returns the length of the token in `run`, without a full stop that ends a sentence or an underscore of Markdown.
pub(crate) fn trimmed_len(run: &[u8]) -> usize {
    let kept = run.len().saturating_sub(MAX_DECIDING_BYTES);
    let end = &run[kept..];
    kept + end.iter().rposition(|byte| !matches!(byte, b'.' | b'-' | b'_')).map_or(0, |last| last + 1)
}

/// Returns the start of a long run, which decides whether it is a secret.
pub(crate) fn leading_bytes(run: &[u8]) -> &[u8] {
    &run[..run.len().min(MAX_DECIDING_BYTES)]
}

/// Returns whether the bytes may be random, unlike `xxxxxxxx` or `your_token_here`. A long text may contain a word by
/// chance.
pub(crate) fn looks_random(bytes: &[u8]) -> bool {
    let bytes = leading_bytes(bytes);
    let mut seen = [false; 256];
    bytes.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    let distinct = seen.iter().filter(|seen| **seen).count();
    let placeholder = ["your", "YOUR", "xxxx", "XXXX", "example", "placeholder"];
    let text = |what: &&str| memchr::memmem::find(bytes, what.as_bytes()).is_some();
    distinct >= 8 && (bytes.len() > MAX_PLACEHOLDER_BYTES || !placeholder.iter().any(text))
}

/// Counts the digits in the start of a run.
pub(crate) fn count_digits(bytes: &[u8]) -> usize {
    leading_bytes(bytes).iter().filter(|byte| byte.is_ascii_digit()).count()
}

/// Matches a run of at least `least` bytes at `from`.
pub(crate) fn match_run_from(
    text: &ViewText<'_>,
    from: usize,
    of: fn(u8) -> bool,
    least: usize,
    kind: &'static str,
) -> Match {
    let end = text.bounded_run_end(from, of, (least, usize::MAX), true);
    if text.may_continue(end) {
        return Match::Incomplete(from);
    }
    let fits = end - from >= least && looks_random(&text.bytes[from..end]);
    if fits { secret_match(from..end, kind) } else { Match::No }
}
