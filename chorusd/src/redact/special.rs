//! Kinds whose form says more than an alphabet and a length.

use std::ops::Range;

use ::base64::Engine as _;
use ::base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::alphabet::{alnum, token};
use super::bytes::Bytes;
use super::look::{Look, digits, head, random, run_from, secret, trimmed};

/// `sk-…`: keys of Anthropic and OpenAI, and of the many that took the form over.
pub fn dashed_key(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    if !text.begins(at) {
        return Look::No;
    }
    let from = at + 3;
    let rest = &text.all[from..];
    let least = if rest.starts_with(b"ant-") { 60 } else { 32 };
    let end = text.run_of(from, token, (least, usize::MAX), true);
    if text.open(end) {
        return Look::Open(at);
    }
    let end = from + trimmed(&text.all[from..end]);
    let rest = &text.all[from..end];
    let openai = [&b"proj-"[..], b"svcacct-", b"admin-", b"None-"].iter().any(|start| rest.starts_with(start));
    let (kind, least, numbers) = match rest {
        _ if rest.starts_with(b"ant-") => ("anthropic-key", 24, 1),
        _ if openai => ("openai-key", 40, 1),
        _ if memchr::memmem::find(head(rest), b"T3BlbkFJ").is_some() => ("openai-key", 40, 0),
        // `task-…` and `risk-…` end with it.
        _ if text.before(at) == Some(b'-') && at >= 2 && text.get(at - 2).is_some_and(alnum) => return Look::No,
        _ => (kind, 32, 4),
    };
    let fits = rest.len() >= least && digits(rest) >= numbers && random(rest);
    if fits { secret(at..end, kind) } else { Look::No }
}

/// Letters of a part of a JWT that are looked at again where it is broken, and of a header that are decoded.
const LONGEST_PART: usize = 2 << 10;

/// Returns true if the header of a JWT names an algorithm. One that is very long does at its beginning or its end.
fn names_algorithm(header: &[u8]) -> bool {
    let named = |part: &[u8]| {
        let part = URL_SAFE_NO_PAD.decode(part).ok();
        part.is_some_and(|part| memchr::memmem::find(&part, b"\"alg\"").is_some())
    };
    if header.len() <= 2 * LONGEST_PART {
        return named(header);
    }
    let last = header.len() - header.len() % 4 - LONGEST_PART;
    named(&header[..LONGEST_PART]) || named(&header[last..])
}

/// Header, claims and signature.
pub fn jwt(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    const LEAST: [usize; 5] = [20, 20, 43, 0, 0];
    if !text.begins(at) {
        return Look::No;
    }
    let mut end = at;
    let mut parts = 0;
    let mut spans: [Range<usize>; 5] = Default::default();
    loop {
        let mut next = text.run_of(end, token, (LEAST[parts], usize::MAX), true);
        if parts < 2 && text.gap(next).is_some() && text.get(next) != Some(b'.') {
            // Broken before the part ends.
            let more = match next - end {
                length if length < LONGEST_PART => text.run_of(end, token, (length + 1, usize::MAX), true),
                _ => text.run_of(next, token, (1, usize::MAX), true),
            };
            if text.open(more) || text.get(more) == Some(b'.') {
                next = more;
            }
        }
        if text.open(next) {
            return Look::Open(at);
        }
        if next == end {
            break;
        }
        spans[parts] = end..next;
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
    // Where its parts begin and end is known: they may be long.
    let long = spans[1..].iter().filter(|part| part.end.min(end).saturating_sub(part.start) >= 10).count();
    if parts < 3 || long < 2 {
        return Look::No;
    }
    if names_algorithm(&text.all[at..spans[0].end.min(end)]) { secret(at..end, kind) } else { Look::No }
}

/// An id in base64, a time and a signature.
pub fn discord_token(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    if !text.begins(at) {
        return Look::No;
    }
    let id = text.run_of(at, token, (22, 33), false);
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
    let time = text.run_of(id + 1, token, (5, 8), false);
    if text.open(time) {
        return Look::Open(at);
    }
    if !(5..=7).contains(&(time - id - 1)) || text.get(time) != Some(b'.') {
        return Look::No;
    }
    let end = text.run_of(time + 1, token, (38, usize::MAX), false);
    if text.open(end) {
        return Look::Open(at);
    }
    let end = time + 1 + trimmed(&text.all[time + 1..end]);
    if (26..=64).contains(&(end - time - 1)) { secret(at..end, kind) } else { Look::No }
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
    run_from(text, id + 1, token, 60, kind)
}

/// `hooks.slack.com/services/…`.
pub fn slack_webhook(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    run_from(text, at + "hooks.slack.com/".len(), |byte| token(byte) || byte == b'/', 40, kind)
}

/// `….webhook.office.com/webhookb2/…`.
pub fn teams_webhook(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let of = |byte| token(byte) || matches!(byte, b'/' | b'@');
    run_from(text, at + ".webhook.office.com/webhookb2/".len(), of, 100, kind)
}

/// `hooks.zapier.com/hooks/catch/…`.
pub fn zapier_webhook(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    run_from(text, at + "hooks.zapier.com/hooks/catch/".len(), |byte| alnum(byte) || byte == b'/', 12, kind)
}

/// `ID:AA…`, of which the id is no secret.
pub fn telegram_token(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let before = text.all[..at].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    if !(7..=11).contains(&before) {
        return Look::No;
    }
    let from = at + 1;
    let end = text.run_of(from, token, (35, 36), false);
    if text.open(end) && end - from < 36 && (end - from < 35 || text.undecided(end)) {
        return Look::Open(from);
    }
    let italics = end - from == 36 && text.get(end - 1) == Some(b'_');
    if end - from == 35 || italics { secret(from..from + 35, kind) } else { Look::No }
}

/// Looks at what follows `.atlasv1.` in a token of Terraform Cloud. The id before it is not a secret.
pub fn terraform(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let before = text.all[..at].iter().rev().take_while(|byte| alnum(**byte)).count();
    let from = at + ".atlasv1.".len();
    if before < 12 {
        return Look::No;
    }
    run_from(text, from, token, 60, kind)
}

/// A client secret of Microsoft Entra: what follows `8Q~`.
pub fn azure_client(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    let from = at + 3;
    let end = text.run_of(from, |byte| token(byte) || matches!(byte, b'~' | b'.'), (31, 38), false);
    if text.open(end) && end - from < 38 && (end - from < 31 || text.undecided(end)) {
        return Look::Open(from);
    }
    let all = &text.all[from..end];
    let struck = all.iter().rev().take_while(|byte| **byte == b'~').count();
    let end = from + trimmed(&all[..all.len() - struck]);
    let value = &text.all[from..end];
    if (30..=34).contains(&value.len()) && random(value) && digits(value) > 0 {
        secret(from..end, kind)
    } else {
        Look::No
    }
}

/// `A3-…`: the secret key of an account of 1Password.
pub fn onepassword(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    if !text.begins(at) {
        return Look::No;
    }
    let of = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-';
    let end = text.run_of(at, of, (39, 41), false);
    if text.open(end) && end - at < 41 && (end - at < 39 || text.undecided(end)) {
        return Look::Open(at);
    }
    let end = at + trimmed(&text.all[at..end]);
    let parts: Vec<usize> = text.all[at..end].split(|byte| *byte == b'-').map(<[u8]>::len).collect();
    let fits = matches!(parts[..], [2, 6, 11, 5, 5, 5] | [2, 6, 6, 5, 5, 5, 5] | [2, 6, 5, 5, 5, 5, 5]);
    if fits && digits(&text.all[at + 3..end]) > 0 { secret(at..end, kind) } else { Look::No }
}

/// `sgp_`, maybe the instance, and forty digits.
pub fn sourcegraph(text: &Bytes<'_>, at: usize, kind: &'static str) -> Look {
    if !text.begins(at) {
        return Look::No;
    }
    let hex = |byte: u8| byte.is_ascii_hexdigit();
    let mut from = at + 4;
    let rest = &text.all[from..];
    if rest.starts_with(b"local_") {
        from += 6;
    } else if !text.whole && b"local_".starts_with(rest) {
        return Look::Open(at);
    } else {
        let instance = text.run_of(from, hex, (16, 40), false);
        if text.open(instance) && instance - from < 40 {
            return Look::Open(at);
        }
        if instance == from + 16 && text.get(instance) == Some(b'_') {
            from = instance + 1;
        }
    }
    let end = text.run_of(from, hex, (40, 40), false);
    if text.undecided(end) || (text.open(end) && end - from < 40) {
        return Look::Open(at);
    }
    let fits = end - from == 40 && random(&text.all[from..end]);
    if fits { secret(at..end, kind) } else { Look::No }
}
