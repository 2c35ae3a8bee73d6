//! Looking at a place where a secret may begin.

use std::ops::Range;

use ::base64::Engine as _;
use ::base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::shapes::{Rule, Shape, alnum, base64, bearer, dotted, token};

/// A text, or what has come of one.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a> {
    pub all: &'a [u8],
    /// Nothing comes after it.
    pub whole: bool,
}

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

/// Bytes of a private key block, its end included; what is longer is none.
const LONGEST_BLOCK: usize = 32 << 10;

/// Bytes of the part of a URL that has a name and a password.
const LONGEST_AUTHORITY: usize = 1 << 10;

impl Bytes<'_> {
    /// The byte at `at`.
    fn get(&self, at: usize) -> Option<u8> {
        self.all.get(at).copied()
    }

    /// Where the bytes of `of` that begin at `from` end.
    fn run(&self, from: usize, of: fn(u8) -> bool) -> usize {
        let rest = self.all.get(from..).unwrap_or_default();
        from + rest.iter().position(|byte| !of(*byte)).unwrap_or(rest.len())
    }

    /// Whether what ends at `end` may go on.
    fn open(&self, end: usize) -> bool {
        !self.whole && end >= self.all.len()
    }

    /// Whether a word may begin at `at`: not in the middle of another, unless that is the end of an escape (`\n` in JSON, `%3D`
    /// in a URL, a colour of the terminal).
    pub fn begins(&self, at: usize) -> bool {
        let back = |count: usize| at.checked_sub(count).and_then(|at| self.get(at));
        let Some(before) = back(1) else { return true };
        if !alnum(before) && before != b'_' {
            return true;
        }
        let hex = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
        (matches!(before, b'n' | b't' | b'r') && back(2) == Some(b'\\'))
            || (hex(back(1)) && hex(back(2)) && back(3) == Some(b'%'))
            || (before == b'm' && self.colour(at - 1))
            || (back(6) == Some(b'\\') && back(5) == Some(b'u') && (1..=4).all(|count| hex(back(count))))
    }

    /// Whether the `m` at `at` ends a colour such as `ESC [ 1 ; 31 m`.
    fn colour(&self, at: usize) -> bool {
        let before = self.all.get(..at).unwrap_or_default();
        let start = before.iter().rposition(|byte| !matches!(byte, b'0'..=b'9' | b';'));
        start.is_some_and(|start| start > 0 && before.get(start - 1..=start) == Some(b"\x1b["))
    }
}

/// Looks at `at`, where `shape` begins.
pub fn look(text: &Bytes<'_>, at: usize, shape: &Shape) -> Look {
    let from = at + shape.start.len();
    match shape.rule {
        Rule::By(look) | Rule::After(look) => look(text, at, shape.kind),
        _ if !text.begins(at) => Look::No,
        Rule::Run { of, least } => {
            let end = text.run(from, of);
            if text.open(end) {
                return Look::Open(at);
            }
            // A full stop after it is the sentence's.
            let end = from + trimmed(&text.all[from..end]);
            let rest = &text.all[from..end];
            if rest.len() >= least && random(rest) { secret(at..end, shape.kind) } else { Look::No }
        }
        Rule::Exact { of, count } => {
            let end = text.run(from, of);
            if text.open(end) && end <= from + count {
                return Look::Open(at);
            }
            let next = text.get(from + count);
            let fits = end >= from + count && next.is_none_or(|next| !token(next) || next == b'-');
            if fits && random(&text.all[from..from + count]) { secret(at..from + count, shape.kind) } else { Look::No }
        }
    }
}

fn secret(part: Range<usize>, kind: &'static str) -> Look {
    Look::Secret { part, kind }
}

fn trimmed(run: &[u8]) -> usize {
    run.iter().rposition(|byte| !matches!(byte, b'.' | b'-')).map_or(0, |last| last + 1)
}

/// Whether it may have been made by chance: not `xxxxxxxx` or `your_token_here`.
fn random(bytes: &[u8]) -> bool {
    let mut seen = [false; 256];
    bytes.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    let distinct = seen.iter().filter(|seen| **seen).count();
    let placeholder = ["your", "YOUR", "xxxx", "XXXX", "example", "placeholder"];
    let text = |what: &&str| memchr::memmem::find(bytes, what.as_bytes()).is_some();
    distinct >= 8 && !placeholder.iter().any(text)
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| byte.is_ascii_digit()).count()
}

/// `sk-…`: keys of Anthropic and OpenAI, and of the many that took the form over.
pub fn dashed_key(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    if !text.begins(at) || at.checked_sub(1).and_then(|before| text.get(before)) == Some(b'-') {
        return Look::No;
    }
    let from = at + 3;
    let end = text.run(from, token);
    if text.open(end) {
        return Look::Open(at);
    }
    let end = from + trimmed(&text.all[from..end]);
    let rest = &text.all[from..end];
    let openai = [&b"proj-"[..], b"svcacct-", b"admin-", b"None-"].iter().any(|start| rest.starts_with(start));
    let (kind, least, numbers) = match rest {
        _ if rest.starts_with(b"ant-") => ("anthropic-key", 24, 1),
        _ if openai => ("openai-key", 40, 1),
        _ if memchr::memmem::find(rest, b"T3BlbkFJ").is_some() => ("openai-key", 40, 0),
        _ => (kind, 32, 4),
    };
    let fits = rest.len() >= least && digits(rest) >= numbers && random(rest);
    if fits { secret(at..end, kind) } else { Look::No }
}

/// Header, claims and signature.
pub fn jwt(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    if !text.begins(at) {
        return Look::No;
    }
    let mut end = at;
    let mut parts = 0;
    loop {
        let next = text.run(end, token);
        if text.open(next) {
            return Look::Open(at);
        }
        if next == end {
            break;
        }
        (end, parts) = (next, parts + 1);
        if parts == 5 || text.get(end) != Some(b'.') {
            break;
        }
        if parts == 1 && !text.open(end + 1) && text.get(end + 1).is_none_or(|byte| !token(byte) && byte != b'.') {
            break;
        }
        end += 1;
        // An encrypted one may have no key in its second part.
        if parts == 1 && text.get(end) == Some(b'.') {
            end += 1;
            parts += 1;
        }
    }
    let end = at + trimmed(&text.all[at..end]);
    let mut split = text.all[at..end].split(|byte| *byte == b'.');
    let header = split.next().unwrap_or_default();
    let header = URL_SAFE_NO_PAD.decode(header).ok();
    let named = header.is_some_and(|header| memchr::memmem::find(&header, b"\"alg\"").is_some());
    let long = split.filter(|part| part.len() >= 10).count();
    if named && parts >= 3 && long >= 2 { secret(at..end, kind) } else { Look::No }
}

/// A block in PEM, also one whose line ends are written as `\n`.
pub fn private_key(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let from = at + "-----BEGIN ".len();
    let label_end = text.run(from, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    if text.open(label_end) {
        return Look::Open(at);
    }
    let label = &text.all[from..label_end];
    let begins = label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK");
    let dashes = text.run(label_end, |byte| byte == b'-');
    if text.open(dashes) && begins {
        return Look::Open(at);
    }
    if !begins || dashes != label_end + 5 {
        return Look::No;
    }
    let rest = &text.all[dashes..];
    let rest = &rest[..rest.len().min(LONGEST_BLOCK)];
    let (body, end) = match memchr::memmem::find(rest, b"-----END ") {
        Some(found) => {
            let label = text.run(dashes + found + 9, |byte| byte != b'-' && byte != b'\n');
            let end = text.run(label, |byte| byte == b'-').min(label + 5);
            if text.open(end) && end < label + 5 {
                return Look::Open(at);
            }
            (&rest[..found], end)
        }
        None if !text.whole && rest.len() < LONGEST_BLOCK => return Look::Open(at),
        // Cut off: what of it there is.
        None => {
            let body = &rest[..body_of(rest)];
            (body, dashes + body.len())
        }
    };
    let key = body.iter().filter(|byte| base64(**byte)).count();
    if key >= 32 && random(body) { secret(at..end, kind) } else { Look::No }
}

/// How much of `rest` is base64 in lines, which may have numbers before them.
fn body_of(rest: &[u8]) -> usize {
    let mut begins = false;
    let ends = |byte: &u8| {
        let goes_on = match byte {
            b'\n' | b'\r' => {
                begins = true;
                true
            }
            b' ' | b'\t' | b':' | b'|' => begins,
            byte => {
                begins &= byte.is_ascii_digit();
                base64(*byte) || *byte == b'\\'
            }
        };
        !goes_on
    };
    rest.iter().position(ends).unwrap_or(rest.len())
}

/// The password in `scheme://user:password@host`.
pub fn url_password(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let scheme = at.checked_sub(1).and_then(|before| text.get(before));
    if !scheme.is_some_and(|byte| alnum(byte) || matches!(byte, b'+' | b'-' | b'.')) {
        return Look::No;
    }
    let from = at + 3;
    let inside = |byte: u8| {
        byte.is_ascii_graphic() && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\')
    };
    let end = text.run(from, inside);
    if end - from > LONGEST_AUTHORITY {
        return Look::No;
    }
    if text.open(end) {
        return Look::Open(from);
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

/// Whether a password only says where one belongs.
fn stands_for(password: &[u8]) -> bool {
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
    matches!(first, b'$' | b'{' | b'[' | b'%' | b'*' | b'(')
        || password.iter().all(|byte| matches!(byte, b'x' | b'X' | b'.' | b'*'))
        || WORDS.iter().any(|word| password.eq_ignore_ascii_case(word))
}

/// The value of a header.
pub fn bearer_token(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    if !text.begins(at) {
        return Look::No;
    }
    let from = at + "Bearer ".len();
    let end = text.run(from, bearer);
    if text.open(end) {
        return Look::Open(from);
    }
    let end = from + trimmed(&text.all[from..end]);
    let value = &text.all[from..end];
    let fits = value.len() >= 20 && digits(value) >= 2 && value.iter().any(u8::is_ascii_alphabetic) && random(value);
    if fits { secret(from..end, kind) } else { Look::No }
}

/// A name and a password in base64.
pub fn basic_auth(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    if !text.begins(at) {
        return Look::No;
    }
    let from = at + "Basic ".len();
    let end = text.run(from, base64);
    if text.open(end) {
        return Look::Open(from);
    }
    let value = &text.all[from..end];
    let decoded =
        if value.len() >= 8 { STANDARD.decode(value).or_else(|_| STANDARD_NO_PAD.decode(value)).ok() } else { None };
    let pair = decoded.filter(|pair| pair.iter().all(|byte| byte.is_ascii_graphic()));
    let pair = pair.and_then(|pair| pair.iter().position(|byte| *byte == b':').map(|colon| (colon, pair.len())));
    match pair {
        Some((_, length)) if length >= 6 => secret(from..end, kind),
        _ => Look::No,
    }
}

/// An id in base64, a time and a signature.
pub fn discord_token(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    if !text.begins(at) {
        return Look::No;
    }
    let id = text.run(at, token);
    if id - at > 32 {
        return Look::No;
    }
    if text.open(id) {
        return Look::Open(at);
    }
    if id - at < 22 || text.get(id) != Some(b'.') {
        return Look::No;
    }
    let number = URL_SAFE_NO_PAD.decode(&text.all[at..id]).ok();
    if !number.is_some_and(|number| number.len() >= 16 && number.iter().all(u8::is_ascii_digit)) {
        return Look::No;
    }
    let time = text.run(id + 1, token);
    if text.open(time) {
        return Look::Open(at);
    }
    if !(5..=7).contains(&(time - id - 1)) || text.get(time) != Some(b'.') {
        return Look::No;
    }
    let end = text.run(time + 1, token);
    if text.open(end) {
        return Look::Open(at);
    }
    if (27..=64).contains(&(end - time - 1)) { secret(at..end, kind) } else { Look::No }
}

/// `discord.com/api/webhooks/ID/TOKEN`.
pub fn discord_webhook(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let from = at + "/api/webhooks/".len();
    let id = text.run(from, |byte| byte.is_ascii_digit());
    if text.open(id) || (id > from && text.open(id + 1)) {
        return Look::Open(from);
    }
    if id - from < 15 || text.get(id) != Some(b'/') {
        return Look::No;
    }
    run_from(text, id + 1, token, 40, kind)
}

/// `hooks.slack.com/services/…`.
pub fn slack_webhook(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    run_from(text, at + "hooks.slack.com/".len(), |byte| token(byte) || byte == b'/', 40, kind)
}

/// What stands at `from`, at least so long.
fn run_from(text: &Bytes<'_>, from: usize, of: fn(u8) -> bool, least: usize, kind: &'static str) -> Look {
    let end = text.run(from, of);
    if text.open(end) {
        return Look::Open(from);
    }
    let fits = end - from >= least && random(&text.all[from..end]);
    if fits { secret(from..end, kind) } else { Look::No }
}

/// `ID:AA…`, of which the id is no secret.
pub fn telegram_token(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let before = text.all[..at].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    if !(7..=11).contains(&before) {
        return Look::No;
    }
    let end = text.run(at + 1, token);
    if text.open(end) {
        return Look::Open(at + 1);
    }
    if end - at - 1 == 35 { secret(at + 1..end, kind) } else { Look::No }
}

/// `AccountKey=`, 64 bytes in base64.
pub fn azure_key(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let from = at + "AccountKey=".len();
    let end = text.run(from, base64);
    if text.open(end) {
        return Look::Open(from);
    }
    if end - from == 88 && random(&text.all[from..end]) { secret(from..end, kind) } else { Look::No }
}

/// The 40 characters that are assigned to `secret_access_key`.
pub fn assigned_secret(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    assigned(text, at, |length| length == 40, kind)
}

/// What is assigned to `session_token`, where it is as long as AWS's.
pub fn assigned_session(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    assigned(text, at, |length| length >= 100, kind)
}

fn assigned(text: &Bytes<'_>, at: usize, fits: fn(usize) -> bool, kind: &'static str) -> Look {
    let name = text.run(at, |byte| alnum(byte) || byte == b'_');
    let from = text.run(name, |byte| matches!(byte, b' ' | b'\t' | b'=' | b':' | b'"' | b'\'' | b'\\' | b'>' | b'`'));
    if text.open(from) {
        return Look::Open(from);
    }
    let between = &text.all[name..from];
    if between.len() > 16 || !between.iter().any(|byte| matches!(byte, b'=' | b':')) {
        return Look::No;
    }
    let end = text.run(from, base64);
    if text.open(end) {
        return Look::Open(from);
    }
    let value = &text.all[from..end];
    if fits(value.len()) && random(value) && digits(value) > 0 { secret(from..end, kind) } else { Look::No }
}

/// Whether more of a secret of this shape may follow what ended: for what was cut off.
pub fn goes_on(byte: u8) -> bool {
    dotted(byte) || base64(byte)
}
