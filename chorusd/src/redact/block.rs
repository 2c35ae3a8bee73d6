//! Private keys in blocks of lines. A view has no line ends, numbers and marks of lines any more.

use super::alphabet::base64;
use super::bytes::Bytes;
use super::look::{Look, random, secret};

/// Bytes of a private key block, its end included; what is longer is none.
const LONGEST_BLOCK: usize = 32 << 10;

/// Letters of a line in a block, but for the last: at least, and at most.
const LINE: std::ops::RangeInclusive<usize> = 40..=100;

/// Letters of an unfinished line that may be one of a block.
const BEGUN: usize = 12;

/// Letters that wait for the end of a block whose beginning nobody saw.
const LONGEST_BODY: usize = 8 << 10;

/// A block in PEM.
pub fn private_key(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let dashes = match label(text, at + "-----BEGIN ".len()) {
        Label::Open => return Look::Open(at),
        Label::No => return Look::No,
        Label::Ends(end) => end,
    };
    let rest = &text.all[dashes..];
    let rest = &rest[..rest.len().min(LONGEST_BLOCK)];
    let (body, end) = match memchr::memmem::find(rest, b"-----END ") {
        Some(found) => {
            let label = label_end(text, dashes + found + 9);
            let end = text.run(label, |byte| byte == b'-').min(label + 5);
            if text.open(end) && end < label + 5 {
                return Look::Open(at);
            }
            (&rest[..found], end)
        }
        None if !text.whole && rest.len() < LONGEST_BLOCK => return Look::Open(at),
        // Cut off: what of it there is.
        None => {
            let body = &rest[..body_of(text, dashes).min(rest.len())];
            (body, dashes + body.len())
        }
    };
    let key = body.iter().filter(|byte| base64(**byte)).count();
    if key >= 32 && random(body) { secret(at..end, kind) } else { Look::No }
}

enum Label {
    No,
    Open,
    /// Behind its dashes.
    Ends(usize),
}

fn label_end(text: &Bytes<'_>, from: usize) -> usize {
    let rest = text.all.get(from..).unwrap_or_default();
    let inside = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    from + rest.iter().position(|byte| !inside(byte)).unwrap_or(rest.len())
}

/// The label of a private key at `from`.
fn label(text: &Bytes<'_>, from: usize) -> Label {
    let end = label_end(text, from);
    if text.open(end) {
        return Label::Open;
    }
    let label = &text.all[from..end];
    let private = label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK");
    if !private {
        return Label::No;
    }
    let rest = &text.all[end..];
    match rest.iter().take(5).take_while(|byte| **byte == b'-').count() {
        5 => Label::Ends(end + 5),
        dashes if text.open(end + dashes) => Label::Open,
        _ => Label::No,
    }
}

/// How much from `from` on is base64 in lines.
fn body_of(text: &Bytes<'_>, from: usize) -> usize {
    let rest = text.all.get(from..).unwrap_or_default();
    rest.iter().position(|byte| !base64(*byte)).unwrap_or(rest.len())
}

/// The lines before the end of a private key whose first line is missing.
pub fn end_of_key(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let from = body_before(text, at);
    match label(text, at + "-----END ".len()) {
        Label::No => Look::No,
        Label::Open if at - from >= 32 => Look::Open(from),
        Label::Open => Look::No,
        Label::Ends(end) if at - from >= 32 && random(&text.all[from..at]) => secret(from..end, kind),
        Label::Ends(_) => Look::No,
    }
}

/// Returns the start of the lines of base64 before `at`.
fn body_before(text: &Bytes<'_>, at: usize) -> usize {
    let mut from = at;
    while from > 0 && at - from < LONGEST_BODY {
        let start = text.part_start(from - 1);
        let line = &text.all[start..from];
        let inside = line.iter().rev().take_while(|byte| base64(**byte)).count();
        // Only the last line may be short, and only the first may begin behind something else.
        if inside < *LINE.start() && from != at {
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
pub fn unfinished(text: &Bytes<'_>) -> Option<usize> {
    let end = text.all.len();
    let start = text.part_start(end);
    let last = &text.all[start..end];
    let inside = last.iter().rev().take_while(|byte| base64(**byte)).count();
    let ends = !last.is_empty() && (last.starts_with(b"-----END ") || b"-----END ".starts_with(last));
    if inside < last.len() && !ends && inside < BEGUN || inside > *LINE.end() {
        return None;
    }
    let body = if ends { start } else { end };
    let from = body_before(text, body);
    let lines = start - from.min(start);
    let begun = &text.all[end - inside..];
    let random =
        inside >= BEGUN && begun.iter().any(u8::is_ascii_uppercase) && begun.iter().any(u8::is_ascii_lowercase);
    let random = random && begun.iter().any(|byte| !byte.is_ascii_alphabetic());
    (lines >= *LINE.start() || random).then_some(from).filter(|from| end - from < LONGEST_BODY)
}

/// The lines behind `Private-Lines: ` in a key of PuTTY.
pub fn putty(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let digits = at + "Private-Lines: ".len();
    let from = text.run_of(digits, |byte| byte.is_ascii_digit(), (1, 3), false);
    if text.open(from) {
        return Look::Open(from);
    }
    if from == digits || text.gap(from).is_none_or(|gap| !gap.line) {
        return Look::No;
    }
    let mut end = from;
    loop {
        let line = text.line_end(end, usize::MAX);
        let inside = text.all[end..line].iter().take_while(|byte| base64(**byte)).count();
        if text.open(end + inside) {
            return Look::Open(from);
        }
        if inside < line - end || inside == 0 {
            break;
        }
        end = line;
    }
    if end - from >= 32 && random(&text.all[from..end]) { secret(from..end, kind) } else { Look::No }
}
