//! The credentials in the header that says who asks.

use std::ops::Range;

use ::base64::Engine as _;
use ::base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::alphabet::{alnum, bearer};
use super::bytes::Bytes;
use super::credentials::LONGEST_NAME;
use super::look::{Look, digits, head, random, secret, trimmed};

/// Letters of a line at most that are looked through for credentials.
const LONGEST: usize = 4 << 10;

/// Returns the start of the value behind a name that ends at `name`, if blanks or the end of a line are between them.
fn behind_blanks(text: &Bytes<'_>, name: usize) -> Option<usize> {
    let from = text.run_of(name, |byte| byte == b' ', (0, usize::MAX), false);
    (from > name || text.gap(from).is_some()).then_some(from)
}

/// The value of a header.
pub fn bearer_token(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    if !text.begins(at) {
        return Look::No;
    }
    let name = at + "Bearer".len();
    if text.open(name) {
        return Look::Open(name);
    }
    let Some(from) = behind_blanks(text, name) else { return Look::No };
    let end = text.run_of(from, bearer, (20, usize::MAX), true);
    if text.open(end) {
        return Look::Open(from);
    }
    let end = from + trimmed(&text.all[from..end]);
    if opaque(&text.all[from..end]) { secret(from..end, kind) } else { Look::No }
}

/// Returns true if the value may be a token: not a word, and long enough.
fn opaque(value: &[u8]) -> bool {
    value.len() >= 20 && digits(value) >= 2 && head(value).iter().any(u8::is_ascii_alphabetic) && random(value)
}

/// A name and a password in base64.
pub fn basic_auth(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    if !text.begins(at) {
        return Look::No;
    }
    let name = at + "Basic".len();
    if text.open(name) {
        return Look::Open(name);
    }
    let Some(from) = behind_blanks(text, name) else { return Look::No };
    pair(text, from, kind)
}

/// A name and a password in base64 at `from`.
fn pair(text: &Bytes<'_>, from: usize, kind: &'static str) -> Look {
    let mut end = text.base64_run(from, 0, true);
    if text.open(end) {
        return Look::Open(from);
    }
    if let Some(gap) = text.gap(end)
        && !gap.hard
        && decoded(&text.all[from..end]).is_none_or(|pair| (end - from).is_multiple_of(4) && pair.last() != Some(&b'='))
    {
        // Broken where nothing says so: what is in the next line belongs to it if both together are a pair.
        let more = text.base64_run(end, 1, false);
        if text.open(more) {
            return Look::Open(from);
        }
        let ended =
            text.next(more).is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'\\'));
        let padded = text.all[from..more].ends_with(b"=") || decoded(&text.all[from..end]).is_none();
        if more > end && ended && padded && decoded(&text.all[from..more]).is_some() {
            end = more;
        }
    }
    if decoded(&text.all[from..end]).is_some() { secret(from..end, kind) } else { Look::No }
}

/// The name and the password that `value` says in base64.
fn decoded(value: &[u8]) -> Option<Vec<u8>> {
    if value.len() < 8 {
        return None;
    }
    // Of a very long one the beginning says it.
    let value = &value[..value.len().min(LONGEST)];
    let decoded = STANDARD.decode(value).or_else(|_| STANDARD_NO_PAD.decode(value)).ok()?;
    let pair = decoded.iter().all(u8::is_ascii_graphic) && decoded.contains(&b':') && decoded.len() >= 6;
    pair.then_some(decoded)
}

/// `"auth": "…"` in the configuration of Docker.
pub fn docker_auth(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    if text.before(at).is_none_or(|byte| byte != b'"') {
        return Look::No;
    }
    let name = at + "auth".len();
    let between = |byte| matches!(byte, b' ' | b'\t' | b':' | b'"' | b'\\');
    let from = text.run_of(name, between, (0, usize::MAX), false);
    if text.open(from) {
        return Look::Open(from);
    }
    if from - name > 16 || !text.all[name..from].contains(&b':') {
        return Look::No;
    }
    pair(text, from, kind)
}

/// Returns the range between the name of the header and the end of its value.
fn value(text: &Bytes<'_>, at: usize) -> Result<Range<usize>, Look> {
    let name = text.run_of(at + 1, alnum, (0, LONGEST_NAME), false);
    if text.open(name) {
        return Err(Look::Open(name));
    }
    // In a command its quote stands before the name, in JSON before the value.
    let start = at.saturating_sub(1);
    let outer = text.before(start).filter(|byte| matches!(byte, b'"' | b'\''));
    let between = |byte| matches!(byte, b' ' | b'\t' | b':' | b'=' | b'"' | b'\'' | b'\\');
    let from = text.run_of(name, between, (0, usize::MAX), false);
    if text.open(from) {
        return Err(Look::Open(from));
    }
    let separator = &text.all[name..from];
    if separator.len() > 16 || !separator.iter().any(|byte| matches!(byte, b':' | b'=')) {
        return Err(Look::No);
    }
    let inner = separator.iter().rev().find(|byte| matches!(byte, b'"' | b'\'')).copied();
    let inner = inner.filter(|_| matches!(separator.last(), Some(b'"' | b'\'')));
    let quote = inner.or(outer);
    let end = text.line_end(from, LONGEST);
    let line = &text.all[from..end];
    let closed = quote.and_then(|quote| memchr::memchr(quote, line));
    match closed {
        Some(closed) => Ok(from..from + closed),
        None if text.undecided(end) => Err(Look::Open(from)),
        None => Ok(from..end),
    }
}

/// The credentials in `Authorization: SCHEME CREDENTIALS`, whatever the scheme.
pub fn authorization(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    if !matches!(before, Some(b'A' | b'a')) {
        return Look::No;
    }
    let part = match value(text, at) {
        Ok(part) => part,
        Err(look) => return look,
    };
    let all = &text.all[part.clone()];
    let scheme = all.iter().position(|byte| *byte == b' ').unwrap_or(0);
    let credentials = part.start + scheme + all[scheme..].iter().take_while(|byte| **byte == b' ').count();
    // Bearer and Basic are looked at where they stand.
    let word = &all[..scheme];
    if word.eq_ignore_ascii_case(b"bearer") || word.eq_ignore_ascii_case(b"basic") {
        return Look::No;
    }
    let rest = &text.all[credentials..part.end];
    if has_parameters(rest) {
        let part = part.start..broken(text, part.end);
        if text.open(part.end) {
            return Look::Open(credentials);
        }
        let all = &text.all[part.clone()];
        let rest = &text.all[credentials..part.end];
        let end = part.start
            + all.iter().rposition(|byte| !byte.is_ascii_whitespace() && *byte != b'\\').map_or(0, |last| last + 1);
        return if random(rest) && digits(rest) > 3 && rest.len() >= 20 {
            secret(credentials..end, kind)
        } else {
            Look::No
        };
    }
    let end = text.run_of(credentials, bearer, (16, usize::MAX), true);
    if text.open(end) {
        return Look::Open(credentials);
    }
    let end = credentials + trimmed(&text.all[credentials..end]);
    let value = &text.all[credentials..end];
    if value.len() >= 16 && digits(value) >= 2 && random(value) { secret(credentials..end, kind) } else { Look::No }
}

/// Returns the real end of credentials that end with a line at `end`, if the line is broken in the middle of them.
fn broken(text: &Bytes<'_>, end: usize) -> usize {
    let of = |byte: u8| bearer(byte) || matches!(byte, b',' | b'"');
    let more = text.run_of(end, of, (1, usize::MAX), false);
    let rest = text.all.get(end..more).unwrap_or_default();
    if text.open(more) {
        return more;
    }
    if text.gap(end).is_some_and(|gap| !gap.hard) && rest.len() >= 6 && digits(rest) >= 3 { more } else { end }
}

/// Returns true if credentials are `name=value, name="value"`, as those of Digest, OAuth and AWS.
fn has_parameters(credentials: &[u8]) -> bool {
    let name = credentials.iter().take_while(|byte| alnum(**byte) || matches!(byte, b'_' | b'-')).count();
    let assigned = name > 0 && credentials.get(name) == Some(&b'=');
    assigned && credentials.iter().any(|byte| matches!(byte, b',' | b'"' | b'/'))
}
