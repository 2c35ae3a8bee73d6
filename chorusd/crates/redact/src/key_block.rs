//! Private keys in blocks of several lines. The view has already removed line ends, line numbers and line marks.

use super::alphabet::is_base64;
use super::matcher_input::ViewText;
use super::pattern_matcher::{Match, looks_random, secret_match};

/// Size of the largest private key block, including its end. Longer ones do not count as a key.
const MAX_BLOCK_BYTES: usize = 32 << 10;

/// Smallest and largest length of a line in a block, except the last line.
const KEY_LINE_LENGTHS: std::ops::RangeInclusive<usize> = 40..=100;

/// Length from which an unfinished line may be part of a block.
const MIN_UNFINISHED_LINE: usize = 12;

/// Bytes that are held back while the end of a block is missing whose first line was not seen.
const MAX_BODY_BYTES: usize = 8 << 10;

/// Matches a block in PEM.
pub(crate) fn private_key(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    let dashes = match parse_label(text, at + "-----BEGIN ".len()) {
        KeyLabel::Incomplete => return Match::Incomplete(at),
        KeyLabel::No => return Match::No,
        KeyLabel::EndsAt(end) => end,
    };
    let rest = &text.bytes[dashes..];
    let rest = &rest[..rest.len().min(MAX_BLOCK_BYTES)];
    let (body, end) = match memchr::memmem::find(rest, b"-----END ") {
        Some(found) => {
            let label = label_end(text, dashes + found + 9);
            let end = text.run_end(label, |byte| byte == b'-').min(label + 5);
            if text.may_continue(end) && end < label + 5 {
                return Match::Incomplete(at);
            }
            (&rest[..found], end)
        }
        None if !text.is_complete && rest.len() < MAX_BLOCK_BYTES => return Match::Incomplete(at),
        // The block was cut off: match what there is of it.
        None => {
            let body = &rest[..body_end(text, dashes).min(rest.len())];
            (body, dashes + body.len())
        }
    };
    let key = body.iter().filter(|byte| is_base64(**byte)).count();
    if key >= 32 && looks_random(body) { secret_match(at..end, kind) } else { Match::No }
}

enum KeyLabel {
    No,
    Incomplete,
    /// The offset after the dashes that follow the label.
    EndsAt(usize),
}

fn label_end(text: &ViewText<'_>, from: usize) -> usize {
    let rest = text.bytes.get(from..).unwrap_or_default();
    let inside = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    from + rest.iter().position(|byte| !inside(byte)).unwrap_or(rest.len())
}

/// Parses the label of a private key at `from`.
fn parse_label(text: &ViewText<'_>, from: usize) -> KeyLabel {
    let end = label_end(text, from);
    if text.may_continue(end) {
        return KeyLabel::Incomplete;
    }
    let label = &text.bytes[from..end];
    let private = label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK");
    if !private {
        return KeyLabel::No;
    }
    let rest = &text.bytes[end..];
    match rest.iter().take(5).take_while(|byte| **byte == b'-').count() {
        5 => KeyLabel::EndsAt(end + 5),
        dashes if text.may_continue(end + dashes) => KeyLabel::Incomplete,
        _ => KeyLabel::No,
    }
}

/// Returns the end of the base64 at `from`, across lines.
fn body_end(text: &ViewText<'_>, from: usize) -> usize {
    let rest = text.bytes.get(from..).unwrap_or_default();
    rest.iter().position(|byte| !is_base64(*byte)).unwrap_or(rest.len())
}

/// Matches the lines before the end of a private key whose first line is missing.
pub(crate) fn headless_private_key(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    let from = body_start_before(text, at);
    match parse_label(text, at + "-----END ".len()) {
        KeyLabel::No => Match::No,
        KeyLabel::Incomplete if at - from >= 32 => Match::Incomplete(from),
        KeyLabel::Incomplete => Match::No,
        KeyLabel::EndsAt(end) if at - from >= 32 && looks_random(&text.bytes[from..at]) => {
            secret_match(from..end, kind)
        }
        KeyLabel::EndsAt(_) => Match::No,
    }
}

/// Returns the start of the lines of base64 before `at`.
fn body_start_before(text: &ViewText<'_>, at: usize) -> usize {
    let mut from = at;
    while from > 0 && at - from < MAX_BODY_BYTES {
        let start = text.part_start(from - 1);
        let line = &text.bytes[start..from];
        let inside = line.iter().rev().take_while(|byte| is_base64(**byte)).count();
        // Only the last line may be short, and only the first may follow other text.
        if inside < *KEY_LINE_LENGTHS.start() && from != at {
            break;
        }
        from -= inside;
        if inside < line.len() || text.gap(start).is_none_or(|gap| !gap.line) {
            break;
        }
    }
    from
}

/// Returns the start of the lines of base64 at the end of `text`, which may turn out to be the end of a private key.
pub(crate) fn unfinished_key_start(text: &ViewText<'_>) -> Option<usize> {
    let end = text.bytes.len();
    let start = text.part_start(end);
    let last = &text.bytes[start..end];
    let inside = last.iter().rev().take_while(|byte| is_base64(**byte)).count();
    let ends = !last.is_empty() && (last.starts_with(b"-----END ") || b"-----END ".starts_with(last));
    if inside < last.len() && !ends && inside < MIN_UNFINISHED_LINE || inside > *KEY_LINE_LENGTHS.end() {
        return None;
    }
    let body = if ends { start } else { end };
    let from = body_start_before(text, body);
    let lines = start - from.min(start);
    let begun = &text.bytes[end - inside..];
    let random = inside >= MIN_UNFINISHED_LINE
        && begun.iter().any(u8::is_ascii_uppercase)
        && begun.iter().any(u8::is_ascii_lowercase);
    let random = random && begun.iter().any(|byte| !byte.is_ascii_alphabetic());
    (lines >= *KEY_LINE_LENGTHS.start() || random).then_some(from).filter(|from| end - from < MAX_BODY_BYTES)
}

/// Matches the lines after `Private-Lines: ` in a PuTTY key.
pub(crate) fn putty_private_key(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    let digits = at + "Private-Lines: ".len();
    let from = text.bounded_run_end(digits, |byte| byte.is_ascii_digit(), (1, 3), false);
    if text.may_continue(from) {
        return Match::Incomplete(from);
    }
    if from == digits || text.gap(from).is_none_or(|gap| !gap.line) {
        return Match::No;
    }
    let mut end = from;
    loop {
        let line = text.line_end(end, usize::MAX);
        let inside = text.bytes[end..line].iter().take_while(|byte| is_base64(**byte)).count();
        if text.may_continue(end + inside) {
            return Match::Incomplete(from);
        }
        if inside < line - end || inside == 0 {
            break;
        }
        end = line;
    }
    if end - from >= 32 && looks_random(&text.bytes[from..end]) { secret_match(from..end, kind) } else { Match::No }
}
