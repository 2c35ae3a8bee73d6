//! Matchers of secrets that need more than alphabets and lengths.

use std::ops::Range;

use ::base64::Engine as _;
use ::base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::alphabet::{is_alnum, is_base64url};
use super::matcher_input::ViewText;
use super::pattern_matcher::{
    Match, count_digits, leading_bytes, looks_random, match_run_from, secret_match, trimmed_len,
};

/// Matches `sk-…`: keys of Anthropic and OpenAI, and of the many that use the same form.
pub(crate) fn dashed_key(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    if !text.is_word_start(at) {
        return Match::No;
    }
    let from = at + 3;
    let rest = &text.bytes[from..];
    let least = if rest.starts_with(b"ant-") { 60 } else { 32 };
    let end = text.bounded_run_end(from, is_base64url, (least, usize::MAX), true);
    if text.may_continue(end) {
        return Match::Incomplete(at);
    }
    let end = from + trimmed_len(&text.bytes[from..end]);
    let rest = &text.bytes[from..end];
    let openai = [&b"proj-"[..], b"svcacct-", b"admin-", b"None-"].iter().any(|start| rest.starts_with(start));
    let (kind, least, numbers) = match rest {
        _ if rest.starts_with(b"ant-") => ("anthropic-key", 24, 1),
        _ if openai => ("openai-key", 40, 1),
        _ if memchr::memmem::find(leading_bytes(rest), b"T3BlbkFJ").is_some() => ("openai-key", 40, 0),
        // `task-…` and `risk-…` end with the prefix.
        _ if text.byte_before(at) == Some(b'-') && at >= 2 && text.get(at - 2).is_some_and(is_alnum) => {
            return Match::No;
        }
        _ => (kind, 32, 4),
    };
    let fits = rest.len() >= least && count_digits(rest) >= numbers && looks_random(rest);
    if fits { secret_match(at..end, kind) } else { Match::No }
}

/// Bytes of a part of a JWT that are scanned again where it is broken, and bytes of a header that are decoded.
const MAX_DECODED_PART: usize = 2 << 10;

/// Returns whether the header of a JWT names an algorithm. Of a very long one, only its start and its end are examined.
fn names_algorithm(header: &[u8]) -> bool {
    let named = |part: &[u8]| {
        let part = URL_SAFE_NO_PAD.decode(part).ok();
        part.is_some_and(|part| memchr::memmem::find(&part, b"\"alg\"").is_some())
    };
    if header.len() <= 2 * MAX_DECODED_PART {
        return named(header);
    }
    let last = header.len() - header.len() % 4 - MAX_DECODED_PART;
    named(&header[..MAX_DECODED_PART]) || named(&header[last..])
}

/// Matches a JWT: header, claims and signature.
pub(crate) fn jwt(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    const LEAST: [usize; 5] = [20, 20, 43, 0, 0];
    if !text.is_word_start(at) {
        return Match::No;
    }
    let mut end = at;
    let mut parts = 0;
    let mut spans: [Range<usize>; 5] = Default::default();
    loop {
        let mut next = text.bounded_run_end(end, is_base64url, (LEAST[parts], usize::MAX), true);
        if parts < 2 && text.gap(next).is_some() && text.get(next) != Some(b'.') {
            // The text is broken before the part ends.
            let more = match next - end {
                length if length < MAX_DECODED_PART => {
                    text.bounded_run_end(end, is_base64url, (length + 1, usize::MAX), true)
                }
                _ => text.bounded_run_end(next, is_base64url, (1, usize::MAX), true),
            };
            if text.may_continue(more) || text.get(more) == Some(b'.') {
                next = more;
            }
        }
        if text.may_continue(next) {
            return Match::Incomplete(at);
        }
        if next == end {
            break;
        }
        spans[parts] = end..next;
        (end, parts) = (next, parts + 1);
        if parts == 5 || text.get(end) != Some(b'.') {
            break;
        }
        if parts == 1
            && !text.may_continue(end + 1)
            && text.get(end + 1).is_none_or(|byte| !is_base64url(byte) && byte != b'.')
        {
            break;
        }
        end += 1;
        // An encrypted JWT may have an empty second part, which would hold the key.
        if parts == 1 && text.get(end) == Some(b'.') {
            end += 1;
            parts += 1;
        }
    }
    let end = at + trimmed_len(&text.bytes[at..end]);
    // The part boundaries are known from here on; parts may be long.
    let long = spans[1..].iter().filter(|part| part.end.min(end).saturating_sub(part.start) >= 10).count();
    if parts < 3 || long < 2 {
        return Match::No;
    }
    if names_algorithm(&text.bytes[at..spans[0].end.min(end)]) { secret_match(at..end, kind) } else { Match::No }
}

/// Matches a Discord token: an id in base64, a time and a signature.
pub(crate) fn discord_token(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    if !text.is_word_start(at) {
        return Match::No;
    }
    let id = text.bounded_run_end(at, is_base64url, (22, 33), false);
    if id - at > 32 {
        return Match::No;
    }
    if text.may_continue(id) {
        return Match::Incomplete(at);
    }
    if id - at < 22 || text.get(id) != Some(b'.') {
        return Match::No;
    }
    let number = URL_SAFE_NO_PAD.decode(&text.bytes[at..id]).ok();
    if !number.is_some_and(|number| number.len() >= 16 && number.iter().all(u8::is_ascii_digit)) {
        return Match::No;
    }
    let time = text.bounded_run_end(id + 1, is_base64url, (5, 8), false);
    if text.may_continue(time) {
        return Match::Incomplete(at);
    }
    if !(5..=7).contains(&(time - id - 1)) || text.get(time) != Some(b'.') {
        return Match::No;
    }
    let end = text.bounded_run_end(time + 1, is_base64url, (38, usize::MAX), false);
    if text.may_continue(end) {
        return Match::Incomplete(at);
    }
    let end = time + 1 + trimmed_len(&text.bytes[time + 1..end]);
    if (26..=64).contains(&(end - time - 1)) { secret_match(at..end, kind) } else { Match::No }
}

/// Matches the token in `discord.com/api/webhooks/ID/TOKEN`.
pub(crate) fn discord_webhook(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    let from = at + "/api/webhooks/".len();
    let id = text.run_end(from, |byte| byte.is_ascii_digit());
    if text.may_continue(id) || (id > from && text.may_continue(id + 1)) {
        return Match::Incomplete(from);
    }
    if id - from < 15 || text.get(id) != Some(b'/') {
        return Match::No;
    }
    match_run_from(text, id + 1, is_base64url, 60, kind)
}

/// Matches `hooks.slack.com/services/…`.
pub(crate) fn slack_webhook(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    match_run_from(text, at + "hooks.slack.com/".len(), |byte| is_base64url(byte) || byte == b'/', 40, kind)
}

/// Matches `….webhook.office.com/webhookb2/…`.
pub(crate) fn teams_webhook(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    let of = |byte| is_base64url(byte) || matches!(byte, b'/' | b'@');
    match_run_from(text, at + ".webhook.office.com/webhookb2/".len(), of, 100, kind)
}

/// Matches `hooks.zapier.com/hooks/catch/…`.
pub(crate) fn zapier_webhook(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    match_run_from(text, at + "hooks.zapier.com/hooks/catch/".len(), |byte| is_alnum(byte) || byte == b'/', 12, kind)
}

/// Matches the secret in `ID:AA…`. The id is not secret.
pub(crate) fn telegram_token(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    let before = text.bytes[..at].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    if !(7..=11).contains(&before) {
        return Match::No;
    }
    let from = at + 1;
    let end = text.bounded_run_end(from, is_base64url, (35, 36), false);
    if text.may_continue(end) && end - from < 36 && (end - from < 35 || text.is_undecided(end)) {
        return Match::Incomplete(from);
    }
    let italics = end - from == 36 && text.get(end - 1) == Some(b'_');
    if end - from == 35 || italics { secret_match(from..from + 35, kind) } else { Match::No }
}

/// Matches what follows `.atlasv1.` in a token of Terraform Cloud. The id before it is not secret.
pub(crate) fn terraform_token(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    let before = text.bytes[..at].iter().rev().take_while(|byte| is_alnum(**byte)).count();
    let from = at + ".atlasv1.".len();
    if before < 12 {
        return Match::No;
    }
    match_run_from(text, from, is_base64url, 60, kind)
}

/// Matches what follows `8Q~` in a client secret of Microsoft Entra.
pub(crate) fn azure_client_secret(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    let from = at + 3;
    let end = text.bounded_run_end(from, |byte| is_base64url(byte) || matches!(byte, b'~' | b'.'), (31, 38), false);
    if text.may_continue(end) && end - from < 38 && (end - from < 31 || text.is_undecided(end)) {
        return Match::Incomplete(from);
    }
    let all = &text.bytes[from..end];
    let struck = all.iter().rev().take_while(|byte| **byte == b'~').count();
    let end = from + trimmed_len(&all[..all.len() - struck]);
    let value = &text.bytes[from..end];
    if (30..=34).contains(&value.len()) && looks_random(value) && count_digits(value) > 0 {
        secret_match(from..end, kind)
    } else {
        Match::No
    }
}

/// Matches `A3-…`, the secret key of a 1Password account.
pub(crate) fn onepassword_key(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    if !text.is_word_start(at) {
        return Match::No;
    }
    let of = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-';
    let end = text.bounded_run_end(at, of, (39, 41), false);
    if text.may_continue(end) && end - at < 41 && (end - at < 39 || text.is_undecided(end)) {
        return Match::Incomplete(at);
    }
    let end = at + trimmed_len(&text.bytes[at..end]);
    let parts: Vec<usize> = text.bytes[at..end].split(|byte| *byte == b'-').map(<[u8]>::len).collect();
    let fits = matches!(parts[..], [2, 6, 11, 5, 5, 5] | [2, 6, 6, 5, 5, 5, 5] | [2, 6, 5, 5, 5, 5, 5]);
    if fits && count_digits(&text.bytes[at + 3..end]) > 0 { secret_match(at..end, kind) } else { Match::No }
}

/// Matches `sgp_`, optionally the instance, and forty digits.
pub(crate) fn sourcegraph_token(text: &ViewText<'_>, at: usize, kind: &'static str) -> Match {
    if !text.is_word_start(at) {
        return Match::No;
    }
    let hex = |byte: u8| byte.is_ascii_hexdigit();
    let mut from = at + 4;
    let rest = &text.bytes[from..];
    if rest.starts_with(b"local_") {
        from += 6;
    } else if !text.is_complete && b"local_".starts_with(rest) {
        return Match::Incomplete(at);
    } else {
        let instance = text.bounded_run_end(from, hex, (16, 40), false);
        if text.may_continue(instance) && instance - from < 40 {
            return Match::Incomplete(at);
        }
        if instance == from + 16 && text.get(instance) == Some(b'_') {
            from = instance + 1;
        }
    }
    let end = text.bounded_run_end(from, hex, (40, 40), false);
    if text.is_undecided(end) || (text.may_continue(end) && end - from < 40) {
        return Match::Incomplete(at);
    }
    let fits = end - from == 40 && looks_random(&text.bytes[from..end]);
    if fits { secret_match(at..end, kind) } else { Match::No }
}
