//! Credentials in the `Authorization` header and the like.

use std::ops::Range;

use ::base64::Engine as _;
use ::base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::alphabet::{is_alnum, is_bearer_byte};
use super::credentials::MAX_NAME_BYTES;
use super::matcher_input::ViewText;
use super::pattern_matcher::{Match, count_digits, leading_bytes, looks_random, secret_match, trimmed_len};

/// Bytes of a line that are searched for credentials.
const MAX_VALUE_BYTES: usize = 4 << 10;

/// Returns the start of the value after a name that ends at `name`, if blanks or a line end separate them.
fn value_start(text: &ViewText<'_>, name: usize) -> Option<usize> {
    let from = text.bounded_run_end(name, |byte| byte == b' ', (0, usize::MAX), false);
    (from > name || text.gap(from).is_some()).then_some(from)
}

/// Matches the token after `Bearer`.
pub(crate) fn bearer_token(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    if !text.is_word_start(at) {
        return Match::No;
    }
    let name = at + "Bearer".len();
    if text.may_continue(name) {
        return Match::Incomplete(name);
    }
    let Some(from) = value_start(text, name) else { return Match::No };
    let end = text.bounded_run_end(from, is_bearer_byte, (20, usize::MAX), true);
    if text.may_continue(end) {
        return Match::Incomplete(from);
    }
    let end = from + trimmed_len(&text.bytes[from..end]);
    if is_opaque_token(&text.bytes[from..end]) { secret_match(from..end, kind) } else { Match::No }
}

/// Returns whether the value may be a token: long enough, and not a word.
fn is_opaque_token(value: &[u8]) -> bool {
    value.len() >= 20
        && count_digits(value) >= 2
        && leading_bytes(value).iter().any(u8::is_ascii_alphabetic)
        && looks_random(value)
}

/// Matches a user name and password in base64 after `Basic`.
pub(crate) fn basic_auth(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    if !text.is_word_start(at) {
        return Match::No;
    }
    let name = at + "Basic".len();
    if text.may_continue(name) {
        return Match::Incomplete(name);
    }
    let Some(from) = value_start(text, name) else { return Match::No };
    match_basic_pair(text, from, kind)
}

/// Matches a user name and password in base64 at `from`.
fn match_basic_pair(text: &ViewText<'_>, from: usize, kind: &'static str) -> Match {
    let mut end = text.base64_run_end(from, 0, true);
    if text.may_continue(end) {
        return Match::Incomplete(from);
    }
    if let Some(gap) = text.gap(end)
        && !gap.hard
        && decode_pair(&text.bytes[from..end])
            .is_none_or(|pair| (end - from).is_multiple_of(4) && pair.last() != Some(&b'='))
    {
        // The line is broken without any mark. The next line belongs to the value if both together decode to a pair.
        let more = text.base64_run_end(end, 1, false);
        if text.may_continue(more) {
            return Match::Incomplete(from);
        }
        let ended =
            text.byte_after(more).is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'\\'));
        let padded = text.bytes[from..more].ends_with(b"=") || decode_pair(&text.bytes[from..end]).is_none();
        if more > end && ended && padded && decode_pair(&text.bytes[from..more]).is_some() {
            end = more;
        }
    }
    if decode_pair(&text.bytes[from..end]).is_some() { secret_match(from..end, kind) } else { Match::No }
}

/// Decodes a user name and password from base64.
fn decode_pair(value: &[u8]) -> Option<Vec<u8>> {
    if value.len() < 8 {
        return None;
    }
    // The start of a very long value suffices.
    let value = &value[..value.len().min(MAX_VALUE_BYTES)];
    let decoded = STANDARD.decode(value).or_else(|_| STANDARD_NO_PAD.decode(value)).ok()?;
    let pair = decoded.iter().all(u8::is_ascii_graphic) && decoded.contains(&b':') && decoded.len() >= 6;
    pair.then_some(decoded)
}

/// Matches `"auth": "…"` in Docker's configuration.
pub(crate) fn docker_auth(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    if text.byte_before(at).is_none_or(|byte| byte != b'"') {
        return Match::No;
    }
    let name = at + "auth".len();
    let between = |byte| matches!(byte, b' ' | b'\t' | b':' | b'"' | b'\\');
    let from = text.bounded_run_end(name, between, (0, usize::MAX), false);
    if text.may_continue(from) {
        return Match::Incomplete(from);
    }
    if from - name > 16 || !text.bytes[name..from].contains(&b':') {
        return Match::No;
    }
    match_basic_pair(text, from, kind)
}

/// Returns the range of a header's value after its name.
fn value_range(text: &ViewText<'_>, at: usize) -> Result<Range<usize>, Match> {
    let name = text.bounded_run_end(at + 1, is_alnum, (0, MAX_NAME_BYTES), false);
    if text.may_continue(name) {
        return Err(Match::Incomplete(name));
    }
    // In a command the quote precedes the name, in JSON the value.
    let start = at.saturating_sub(1);
    let outer = text.byte_before(start).filter(|byte| matches!(byte, b'"' | b'\''));
    let between = |byte| matches!(byte, b' ' | b'\t' | b':' | b'=' | b'"' | b'\'' | b'\\');
    let from = text.bounded_run_end(name, between, (0, usize::MAX), false);
    if text.may_continue(from) {
        return Err(Match::Incomplete(from));
    }
    let separator = &text.bytes[name..from];
    if separator.len() > 16 || !separator.iter().any(|byte| matches!(byte, b':' | b'=')) {
        return Err(Match::No);
    }
    let inner = separator.iter().rev().find(|byte| matches!(byte, b'"' | b'\'')).copied();
    let inner = inner.filter(|_| matches!(separator.last(), Some(b'"' | b'\'')));
    let quote = inner.or(outer);
    let end = text.line_end(from, MAX_VALUE_BYTES);
    let line = &text.bytes[from..end];
    let closed = quote.and_then(|quote| memchr::memchr(quote, line));
    match closed {
        Some(closed) => Ok(from..from + closed),
        None if text.is_undecided(end) => Err(Match::Incomplete(from)),
        None => Ok(from..end),
    }
}

/// Matches the credentials in `Authorization: SCHEME CREDENTIALS` with any scheme.
pub(crate) fn authorization(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    if !matches!(before, Some(b'A' | b'a')) {
        return Match::No;
    }
    let part = match value_range(text, at) {
        Ok(part) => part,
        Err(look) => return look,
    };
    let all = &text.bytes[part.clone()];
    let scheme = all.iter().position(|byte| *byte == b' ').unwrap_or(0);
    let credentials = part.start + scheme + all[scheme..].iter().take_while(|byte| **byte == b' ').count();
    // Bearer and Basic have matchers of their own.
    let word = &all[..scheme];
    if word.eq_ignore_ascii_case(b"bearer") || word.eq_ignore_ascii_case(b"basic") {
        return Match::No;
    }
    let rest = &text.bytes[credentials..part.end];
    if has_parameters(rest) {
        let part = part.start..continued_end(text, part.end);
        if text.may_continue(part.end) {
            return Match::Incomplete(credentials);
        }
        let all = &text.bytes[part.clone()];
        let rest = &text.bytes[credentials..part.end];
        let end = part.start
            + all.iter().rposition(|byte| !byte.is_ascii_whitespace() && *byte != b'\\').map_or(0, |last| last + 1);
        return if looks_random(rest) && count_digits(rest) > 3 && rest.len() >= 20 {
            secret_match(credentials..end, kind)
        } else {
            Match::No
        };
    }
    let end = text.bounded_run_end(credentials, is_bearer_byte, (16, usize::MAX), true);
    if text.may_continue(end) {
        return Match::Incomplete(credentials);
    }
    let end = credentials + trimmed_len(&text.bytes[credentials..end]);
    let value = &text.bytes[credentials..end];
    if value.len() >= 16 && count_digits(value) >= 2 && looks_random(value) {
        secret_match(credentials..end, kind)
    } else {
        Match::No
    }
}

/// Returns the end of credentials whose line ends at `end`, including their continuation if the line is broken.
fn continued_end(text: &ViewText<'_>, end: usize) -> usize {
    let of = |byte: u8| is_bearer_byte(byte) || matches!(byte, b',' | b'"');
    let more = text.bounded_run_end(end, of, (1, usize::MAX), false);
    let rest = text.bytes.get(end..more).unwrap_or_default();
    if text.may_continue(more) {
        return more;
    }
    if text.gap(end).is_some_and(|gap| !gap.hard) && rest.len() >= 6 && count_digits(rest) >= 3 { more } else { end }
}

/// Returns whether credentials have the form `name=value, name="value"`, as those of Digest, OAuth and AWS.
fn has_parameters(credentials: &[u8]) -> bool {
    let name = credentials.iter().take_while(|byte| is_alnum(**byte) || matches!(byte, b'_' | b'-')).count();
    let assigned = name > 0 && credentials.get(name) == Some(&b'=');
    assigned && credentials.iter().any(|byte| matches!(byte, b',' | b'"' | b'/'))
}
