//! Passwords and keys without a format of their own, which are recognised by the text before them.

use super::alphabet::{is_alnum, is_base64, is_bearer_byte, is_word_byte};
use super::matcher_input::ViewText;
use super::pattern_matcher::{Match, count_digits, looks_random, secret_match};

/// Largest size of the part of a URL that contains the user name and password.
const MAX_AUTHORITY_BYTES: usize = 1 << 10;

/// Largest size of the name in an assignment.
pub(crate) const MAX_NAME_BYTES: usize = 64;

/// Matches the password in `scheme://user:password@host`.
pub(crate) fn url_password(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    let scheme = at.checked_sub(1).and_then(|before| text.get(before));
    if !scheme.is_some_and(|byte| is_alnum(byte) || matches!(byte, b'+' | b'-' | b'.')) {
        return Match::No;
    }
    let from = at + 3;
    let mut end = url_run_end(text, from, is_authority_byte);
    if end - from > MAX_AUTHORITY_BYTES {
        return Match::No;
    }
    if text.may_continue(end) {
        return Match::Incomplete(from);
    }
    if !text.bytes[from..end].contains(&b'@') && has_password_start(&text.bytes[from..end]) {
        // A password may contain a slash, which should be escaped but is often pasted as it is.
        end = url_run_end(text, from, is_url_byte);
        if text.may_continue(end) && end - from <= MAX_AUTHORITY_BYTES {
            return Match::Incomplete(from);
        }
        end = end.min(from + MAX_AUTHORITY_BYTES);
    }
    let authority = &text.bytes[from..end];
    let Some(host) = memchr::memrchr(b'@', authority) else { return Match::No };
    let Some(colon) = memchr::memchr(b':', &authority[..host]) else { return Match::No };
    let password = &authority[colon + 1..host];
    let hosted =
        authority.get(host + 1).is_some_and(|byte| is_alnum(*byte) || matches!(byte, b'[' | b'$' | b'{' | b'_' | b'%'));
    if !hosted || is_placeholder(password) {
        return Match::No;
    }
    secret_match(from + colon + 1..from + host, kind)
}

/// Returns whether a byte may occur in a URL.
fn is_url_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\')
}

/// Returns whether a byte may occur in the part of a URL that names the host.
fn is_authority_byte(byte: u8) -> bool {
    is_url_byte(byte) && !matches!(byte, b'/' | b'?' | b'#')
}

/// Returns the end of a part of a URL. A part that is broken by a gap continues until its `@`.
fn url_run_end(text: &ViewText<'_>, from: usize, of: fn(u8) -> bool) -> usize {
    let end = text.bounded_run_end(from, of, (0, MAX_AUTHORITY_BYTES + 1), false);
    let broken =
        text.gap(end).is_some() && !text.bytes[from..end].contains(&b'@') && has_password_start(&text.bytes[from..end]);
    if !broken {
        return end;
    }
    let more = text.bounded_run_end(end, of, (1, MAX_AUTHORITY_BYTES + 1), false);
    let rest = text.bytes.get(end..more).unwrap_or_default();
    if rest.contains(&b'@') || text.may_continue(more) { more } else { end }
}

/// Returns whether the text is a user name and the start of a password rather than a host and its port.
fn has_password_start(authority: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', authority) else { return false };
    let (user, password) = (&authority[..colon], &authority[colon + 1..]);
    !password.is_empty()
        && !password.iter().all(u8::is_ascii_digit)
        && user.iter().all(|byte| is_word_byte(*byte) || matches!(byte, b'-' | b'.' | b'%' | b'+'))
}

/// Returns whether a password is only a placeholder.
pub(crate) fn is_placeholder(password: &[u8]) -> bool {
    const WORDS: [&[u8]; 11] = [
        b"password",
        b"passwd",
        b"pass",
        b"pwd",
        b"pw",
        b"secret",
        b"token",
        b"key",
        b"changeme",
        b"your_password",
        b"your-password",
    ];
    let first = password.first().copied().unwrap_or(b'*');
    matches!(first, b'{' | b'[' | b'*' | b'(' | b'<')
        || (first == b'$' && is_variable(password))
        || (first == b'%' && !starts_with_escape(password))
        || password.iter().all(|byte| matches!(byte, b'x' | b'X' | b'.' | b'*'))
        || WORDS.iter().any(|word| password.eq_ignore_ascii_case(word))
}

/// Returns whether the text is `${…}`, `$(…)` or `$NAME`. A name consists of capitals and digits, or only of letters.
fn is_variable(password: &[u8]) -> bool {
    let name = &password[password.iter().take_while(|byte| **byte == b'$').count()..];
    match name {
        [] => true,
        [b'{', .., last] => *last == b'}',
        [b'(', .., last] => *last == b')',
        _ => {
            name.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
                || name.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        }
    }
}

/// Returns whether a password begins with an escape and is not `%NAME%`.
fn starts_with_escape(password: &[u8]) -> bool {
    let [b'%', one, other, rest @ ..] = password else { return false };
    let named = rest.last() == Some(&b'%') && rest[..rest.len() - 1].iter().all(|byte| is_word_byte(*byte));
    one.is_ascii_hexdigit() && other.is_ascii_hexdigit() && !named
}

/// Matches the 64 bytes in base64 after `AccountKey=`.
pub(crate) fn azure_key(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    match_base64_key(text, at + "AccountKey=".len(), 88, kind)
}

/// Matches the 32 bytes in base64 after `SharedAccessKey=`.
pub(crate) fn shared_key(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    match_base64_key(text, at + "SharedAccessKey=".len(), 44, kind)
}

fn match_base64_key(text: &ViewText<'_>, from: usize, count: usize, kind: &'static str) -> Match {
    let mut end = text.bounded_run_end(from, is_base64, (count - 1, count), false);
    if !text.gap(end).is_some_and(|gap| gap.equals) {
        end = text.bounded_run_end(from, is_base64, (count, count), false);
    }
    if text.may_continue(end) && end - from < count {
        return Match::Incomplete(from);
    }
    let padded = end + 1 == from + count && text.gap(end).is_some_and(|gap| gap.equals);
    if (end - from == count || padded) && looks_random(&text.bytes[from..end]) {
        secret_match(from..end, kind)
    } else {
        Match::No
    }
}

/// Matches the 40 characters that are assigned to `secret_access_key`.
pub(crate) fn assigned_secret(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    match_assigned(text, at, 40, |length| length == 40, kind)
}

/// Matches the value that is assigned to `session_token`, if it is as long as AWS's.
pub(crate) fn assigned_session(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    match_assigned(text, at, 100, |length| length >= 100, kind)
}

fn match_assigned(text: &ViewText<'_>, at: usize, least: usize, fits: fn(usize) -> bool, kind: &'static str) -> Match {
    let name = text.bounded_run_end(at + 1, is_word_byte, (0, MAX_NAME_BYTES), false);
    let between = |byte| matches!(byte, b' ' | b'\t' | b'=' | b':' | b'"' | b'\'' | b'\\' | b'>' | b'`' | b',');
    let from = text.bounded_run_end(name, between, (1, usize::MAX), false);
    if text.may_continue(from) {
        return Match::Incomplete(from);
    }
    let between = &text.bytes[name..from];
    if between.len() > 16 || !between.iter().any(|byte| matches!(byte, b'=' | b':')) {
        return Match::No;
    }
    let end = text.base64_run_end(from, least, least > 40);
    if text.may_continue(end) {
        return Match::Incomplete(from);
    }
    let value = &text.bytes[from..end];
    if fits(value.len()) && looks_random(value) && count_digits(value) > 0 {
        secret_match(from..end, kind)
    } else {
        Match::No
    }
}

/// Matches the values that `.npmrc` assigns to `_auth`, `_authToken` and `_password`.
pub(crate) fn npm_auth(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    // The name is on its own or follows a registry.
    if !text.is_word_start(at) || text.byte_before(at) == Some(b'.') {
        return Match::No;
    }
    let name = text.bounded_run_end(at + 1, is_word_byte, (0, MAX_NAME_BYTES), false);
    if text.may_continue(name) {
        return Match::Incomplete(name);
    }
    let between = |byte| matches!(byte, b' ' | b'\t' | b'=' | b'"' | b'\'');
    let from = text.bounded_run_end(name, between, (0, usize::MAX), false);
    if text.may_continue(from) {
        return Match::Incomplete(from);
    }
    let known = matches!(&text.bytes[at..name], b"_auth" | b"_authToken" | b"_password");
    let registry = text.byte_before(at) == Some(b':');
    if !known || from == name || !(registry || text.bytes[name..from].contains(&b'=')) {
        return Match::No;
    }
    let end = text.bounded_run_end(from, is_bearer_byte, (8, usize::MAX), true);
    if text.may_continue(end) {
        return Match::Incomplete(from);
    }
    let value = &text.bytes[from..end];
    let called = matches!(text.byte_after(end), Some(b'(' | b'[' | b'{' | b':'));
    let mixed = count_digits(value) > 0 || value.ends_with(b"=");
    let fits = value.len() >= 8 && !called && mixed && !is_placeholder(value);
    if fits { secret_match(from..end, kind) } else { Match::No }
}

/// Returns the word that ends before `at`, and its start. Blanks and line ends separate words.
fn word_before<'a>(text: &ViewText<'a>, at: usize) -> (&'a [u8], usize) {
    let mut end = at;
    while end > 0 && text.byte_before(end).is_some_and(|byte| byte.is_ascii_whitespace()) {
        end -= 1;
    }
    let mut start = end;
    while start > 0 && text.get(start - 1).is_some_and(|byte| byte.is_ascii_graphic()) {
        start -= 1;
        if text.gap(start).is_some() {
            break;
        }
    }
    (&text.bytes[start..end], start)
}

/// Returns whether the `login` at `at` follows `machine HOST` or `default`, or begins a line.
fn is_entry_start(text: &ViewText<'_>, at: usize) -> bool {
    let blanks = (0..at).rev().take_while(|before| matches!(text.get(*before), Some(b' ' | b'\t'))).count();
    let line = at - blanks;
    if text.byte_before(line).is_none_or(|byte| matches!(byte, b'\n' | b'\r')) {
        return true;
    }
    let (host, start) = word_before(text, at);
    // A quote or a mark may precede the entry.
    host == b"default" || word_before(text, start).0.ends_with(b"machine")
}

/// Matches the password in `machine HOST login USER password PASSWORD` of `.netrc`.
pub(crate) fn netrc_password(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    if text.byte_before(at).is_some_and(|byte| !byte.is_ascii_whitespace()) {
        return Match::No;
    }
    let (first, start) = word_before(text, at);
    let (name, begun) = word_before(text, start);
    // In a sentence it is "to login with password"; in the file, a host or the start of a line precedes it.
    if name == b"login" && !is_entry_start(text, begun) {
        return Match::No;
    }
    if first != b"default" && name != b"login" && name != b"machine" && name != b"account" {
        return Match::No;
    }
    let name = at + "password".len();
    let from = text.bounded_run_end(name, |byte| matches!(byte, b' ' | b'\t'), (0, usize::MAX), false);
    if text.may_continue(from) {
        return Match::Incomplete(from);
    }
    if from == name && text.gap(from).is_none() {
        return Match::No;
    }
    let end = text.bounded_run_end(from, |byte| byte.is_ascii_graphic(), (1, usize::MAX), true);
    if text.may_continue(end) {
        return Match::Incomplete(from);
    }
    let value = &text.bytes[from..end];
    let quoted = value.iter().rev().take_while(|byte| matches!(byte, b'"' | b'\'' | b'`' | b',')).count();
    let value = &value[..value.len() - quoted];
    if value.len() >= 4 && !is_placeholder(value) { secret_match(from..from + value.len(), kind) } else { Match::No }
}

/// Matches the password in `HOST:PORT:DATABASE:USER:PASSWORD`, a line of `.pgpass`.
pub(crate) fn pgpass_password(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    let field = |byte: &u8| is_alnum(*byte) || matches!(byte, b'.' | b'-' | b'_' | b'*' | b'/');
    let mut host = at;
    while text.byte_before(host).is_some_and(|byte| field(&byte)) {
        host -= 1;
    }
    let named = text.bytes[host..at].contains(&b'.') && text.bytes[host..at].iter().any(u8::is_ascii_alphabetic);
    let behind = text.byte_before(host);
    if host == at || (matches!(behind, Some(b':' | b'@' | b'[' | b']')) && !named) {
        return Match::No;
    }
    let of = |byte: u8| is_alnum(byte) || matches!(byte, b'.' | b'-' | b'_' | b'*');
    let mut from = at + 1 + text.bytes[at + 1..].iter().position(|byte| *byte == b':').map_or(0, |colon| colon + 1);
    for _ in 0..2 {
        let end = text.bounded_run_end(from, of, (0, usize::MAX), false);
        if text.may_continue(end) {
            return Match::Incomplete(end);
        }
        if end == from || text.byte_after(end) != Some(b':') {
            return Match::No;
        }
        from = end + 1;
    }
    let end = text.bounded_run_end(
        from,
        |byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`'),
        (1, usize::MAX),
        true,
    );
    if text.may_continue(end) {
        return Match::Incomplete(from);
    }
    let value = &text.bytes[from..end];
    let mixed = value.iter().any(u8::is_ascii_alphabetic);
    if value.len() >= 6 && mixed && !is_placeholder(value) { secret_match(from..end, kind) } else { Match::No }
}
