//! Passwords and keys that have no form of their own, by what stands before them.

use super::alphabet::{alnum, base64, bearer, word};
use super::bytes::Bytes;
use super::look::{Look, digits, random, secret};

/// Bytes of the part of a URL that has a name and a password.
const LONGEST_AUTHORITY: usize = 1 << 10;

/// Letters of a name that something is assigned to.
pub const LONGEST_NAME: usize = 64;

/// The password in `scheme://user:password@host`.
pub fn url_password(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let scheme = at.checked_sub(1).and_then(|before| text.get(before));
    if !scheme.is_some_and(|byte| alnum(byte) || matches!(byte, b'+' | b'-' | b'.')) {
        return Look::No;
    }
    let from = at + 3;
    let mut end = url_run(text, from, inside);
    if end - from > LONGEST_AUTHORITY {
        return Look::No;
    }
    if text.open(end) {
        return Look::Open(from);
    }
    if !text.all[from..end].contains(&b'@') && may_go_on(&text.all[from..end]) {
        // A password may have a slash in it, which belongs in an escape but is often pasted as it is.
        end = url_run(text, from, plain);
        if text.open(end) && end - from <= LONGEST_AUTHORITY {
            return Look::Open(from);
        }
        end = end.min(from + LONGEST_AUTHORITY);
    }
    let authority = &text.all[from..end];
    let Some(host) = memchr::memrchr(b'@', authority) else { return Look::No };
    let Some(colon) = memchr::memchr(b':', &authority[..host]) else { return Look::No };
    let password = &authority[colon + 1..host];
    let hosted =
        authority.get(host + 1).is_some_and(|byte| alnum(*byte) || matches!(byte, b'[' | b'$' | b'{' | b'_' | b'%'));
    if !hosted || stands_for(password) {
        return Look::No;
    }
    secret(from + colon + 1..from + host, kind)
}

/// Returns true for a byte that may stand in a URL.
fn plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\')
}

/// Returns true for a byte that may stand in the part of a URL that names the host.
fn inside(byte: u8) -> bool {
    plain(byte) && !matches!(byte, b'/' | b'?' | b'#')
}

/// Returns the end of a part of a URL. One that is broken goes on until its `@`.
fn url_run(text: &Bytes<'_>, from: usize, of: fn(u8) -> bool) -> usize {
    let end = text.run_of(from, of, (0, LONGEST_AUTHORITY + 1), false);
    let broken = text.gap(end).is_some() && !text.all[from..end].contains(&b'@') && may_go_on(&text.all[from..end]);
    if !broken {
        return end;
    }
    let more = text.run_of(end, of, (1, LONGEST_AUTHORITY + 1), false);
    let rest = text.all.get(end..more).unwrap_or_default();
    if rest.contains(&b'@') || text.open(more) { more } else { end }
}

/// Returns true if a name and the beginning of a password stand there, and not a host and its port.
fn may_go_on(authority: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', authority) else { return false };
    let (user, password) = (&authority[..colon], &authority[colon + 1..]);
    !password.is_empty()
        && !password.iter().all(u8::is_ascii_digit)
        && user.iter().all(|byte| word(*byte) || matches!(byte, b'-' | b'.' | b'%' | b'+'))
}

/// Whether a password only says where one belongs.
pub fn stands_for(password: &[u8]) -> bool {
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
        || (first == b'$' && variable(password))
        || (first == b'%' && !escaped(password))
        || password.iter().all(|byte| matches!(byte, b'x' | b'X' | b'.' | b'*'))
        || WORDS.iter().any(|word| password.eq_ignore_ascii_case(word))
}

/// Returns true for `${…}`, `$(…)` and `$NAME`: a name has capitals and digits, or letters only.
fn variable(password: &[u8]) -> bool {
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

/// Returns true if a password begins with an escape, and is not `%NAME%`.
fn escaped(password: &[u8]) -> bool {
    let [b'%', one, other, rest @ ..] = password else { return false };
    let named = rest.last() == Some(&b'%') && rest[..rest.len() - 1].iter().all(|byte| word(*byte));
    one.is_ascii_hexdigit() && other.is_ascii_hexdigit() && !named
}

/// `AccountKey=`, 64 bytes in base64.
pub fn azure_key(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    keyed(text, at + "AccountKey=".len(), 88, kind)
}

/// `SharedAccessKey=`, 32 bytes in base64.
pub fn shared_key(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    keyed(text, at + "SharedAccessKey=".len(), 44, kind)
}

fn keyed(text: &Bytes<'_>, from: usize, count: usize, kind: &'static str) -> Look {
    let mut end = text.run_of(from, base64, (count - 1, count), false);
    if !text.gap(end).is_some_and(|gap| gap.equals) {
        end = text.run_of(from, base64, (count, count), false);
    }
    if text.open(end) && end - from < count {
        return Look::Open(from);
    }
    let padded = end + 1 == from + count && text.gap(end).is_some_and(|gap| gap.equals);
    if (end - from == count || padded) && random(&text.all[from..end]) { secret(from..end, kind) } else { Look::No }
}

/// The 40 characters that are assigned to `secret_access_key`.
pub fn assigned_secret(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    assigned(text, at, 40, |length| length == 40, kind)
}

/// What is assigned to `session_token`, where it is as long as AWS's.
pub fn assigned_session(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    assigned(text, at, 100, |length| length >= 100, kind)
}

fn assigned(text: &Bytes<'_>, at: usize, least: usize, fits: fn(usize) -> bool, kind: &'static str) -> Look {
    let name = text.run_of(at + 1, word, (0, LONGEST_NAME), false);
    let between = |byte| matches!(byte, b' ' | b'\t' | b'=' | b':' | b'"' | b'\'' | b'\\' | b'>' | b'`' | b',');
    let from = text.run_of(name, between, (1, usize::MAX), false);
    if text.open(from) {
        return Look::Open(from);
    }
    let between = &text.all[name..from];
    if between.len() > 16 || !between.iter().any(|byte| matches!(byte, b'=' | b':')) {
        return Look::No;
    }
    let end = text.base64_run(from, least, least > 40);
    if text.open(end) {
        return Look::Open(from);
    }
    let value = &text.all[from..end];
    if fits(value.len()) && random(value) && digits(value) > 0 { secret(from..end, kind) } else { Look::No }
}

/// Looks at the values that `.npmrc` assigns to `_auth`, `_authToken` and `_password`.
pub fn npm_auth(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    // The name stands for itself or behind a registry.
    if !text.begins(at) || text.before(at) == Some(b'.') {
        return Look::No;
    }
    let name = text.run_of(at + 1, word, (0, LONGEST_NAME), false);
    if text.open(name) {
        return Look::Open(name);
    }
    let between = |byte| matches!(byte, b' ' | b'\t' | b'=' | b'"' | b'\'');
    let from = text.run_of(name, between, (0, usize::MAX), false);
    if text.open(from) {
        return Look::Open(from);
    }
    let known = matches!(&text.all[at..name], b"_auth" | b"_authToken" | b"_password");
    let registry = text.before(at) == Some(b':');
    if !known || from == name || !(registry || text.all[name..from].contains(&b'=')) {
        return Look::No;
    }
    let end = text.run_of(from, bearer, (8, usize::MAX), true);
    if text.open(end) {
        return Look::Open(from);
    }
    let value = &text.all[from..end];
    let called = matches!(text.next(end), Some(b'(' | b'[' | b'{' | b':'));
    let mixed = digits(value) > 0 || value.ends_with(b"=");
    let fits = value.len() >= 8 && !called && mixed && !stands_for(value);
    if fits { secret(from..end, kind) } else { Look::No }
}

/// The word that ends before `at`, and the place where it begins. Blanks and the ends of lines stand between words.
fn word_before<'a>(text: &Bytes<'a>, at: usize) -> (&'a [u8], usize) {
    let mut end = at;
    while end > 0 && text.before(end).is_some_and(|byte| byte.is_ascii_whitespace()) {
        end -= 1;
    }
    let mut start = end;
    while start > 0 && text.get(start - 1).is_some_and(|byte| byte.is_ascii_graphic()) {
        start -= 1;
        if text.gap(start).is_some() {
            break;
        }
    }
    (&text.all[start..end], start)
}

/// Returns true if the `login` at `at` follows `machine HOST` or `default`, or begins a line.
fn begins_entry(text: &Bytes<'_>, at: usize) -> bool {
    let blanks = (0..at).rev().take_while(|before| matches!(text.get(*before), Some(b' ' | b'\t'))).count();
    let line = at - blanks;
    if text.before(line).is_none_or(|byte| matches!(byte, b'\n' | b'\r')) {
        return true;
    }
    let (host, start) = word_before(text, at);
    // A quote or a mark may stand before the entry.
    host == b"default" || word_before(text, start).0.ends_with(b"machine")
}

/// `machine HOST login USER password PASSWORD` in `.netrc`.
pub fn netrc(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    if text.before(at).is_some_and(|byte| !byte.is_ascii_whitespace()) {
        return Look::No;
    }
    let (first, start) = word_before(text, at);
    let (name, begun) = word_before(text, start);
    // In a sentence it is "to login with password"; in the file a host or the begin of a line stands before it.
    if name == b"login" && !begins_entry(text, begun) {
        return Look::No;
    }
    if first != b"default" && name != b"login" && name != b"machine" && name != b"account" {
        return Look::No;
    }
    let name = at + "password".len();
    let from = text.run_of(name, |byte| matches!(byte, b' ' | b'\t'), (0, usize::MAX), false);
    if text.open(from) {
        return Look::Open(from);
    }
    if from == name && text.gap(from).is_none() {
        return Look::No;
    }
    let end = text.run_of(from, |byte| byte.is_ascii_graphic(), (1, usize::MAX), true);
    if text.open(end) {
        return Look::Open(from);
    }
    let value = &text.all[from..end];
    let quoted = value.iter().rev().take_while(|byte| matches!(byte, b'"' | b'\'' | b'`' | b',')).count();
    let value = &value[..value.len() - quoted];
    if value.len() >= 4 && !stands_for(value) { secret(from..from + value.len(), kind) } else { Look::No }
}

/// `HOST:PORT:DATABASE:USER:PASSWORD`, a line of `.pgpass`.
pub fn pgpass(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let field = |byte: &u8| alnum(*byte) || matches!(byte, b'.' | b'-' | b'_' | b'*' | b'/');
    let mut host = at;
    while text.before(host).is_some_and(|byte| field(&byte)) {
        host -= 1;
    }
    let named = text.all[host..at].contains(&b'.') && text.all[host..at].iter().any(u8::is_ascii_alphabetic);
    let behind = text.before(host);
    if host == at || (matches!(behind, Some(b':' | b'@' | b'[' | b']')) && !named) {
        return Look::No;
    }
    let of = |byte: u8| alnum(byte) || matches!(byte, b'.' | b'-' | b'_' | b'*');
    let mut from = at + 1 + text.all[at + 1..].iter().position(|byte| *byte == b':').map_or(0, |colon| colon + 1);
    for _ in 0..2 {
        let end = text.run_of(from, of, (0, usize::MAX), false);
        if text.open(end) {
            return Look::Open(end);
        }
        if end == from || text.next(end) != Some(b':') {
            return Look::No;
        }
        from = end + 1;
    }
    let end = text.run_of(
        from,
        |byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`'),
        (1, usize::MAX),
        true,
    );
    if text.open(end) {
        return Look::Open(from);
    }
    let value = &text.all[from..end];
    let mixed = value.iter().any(u8::is_ascii_alphabetic);
    if value.len() >= 6 && mixed && !stands_for(value) { secret(from..end, kind) } else { Look::No }
}
