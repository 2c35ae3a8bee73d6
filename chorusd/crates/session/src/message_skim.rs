//! Reads the few properties that are needed of a message from its bytes, without parsing them: for messages in the form that
//! [`chorus_proto::Message`] is serialised in, which are nearly all. [`StoredMessage::parse`](crate::stored_message::StoredMessage::parse)
//! handles every other form and every error.

use chorus_proto::Role;
use jiff::Timestamp;
use memchr::{memchr, memchr2};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::stored_message::CallProbe;

/// The longest rest behind the time of a message that is copied to parse it. Attachments are longer.
const MAX_REST_BYTES: usize = 16 << 10;

/// The fields behind the time. A message that repeats one of the fields before it is not in our form.
#[derive(Deserialize)]
struct RestProbe<'a> {
    #[serde(default)]
    id: Presence,
    #[serde(default)]
    role: Presence,
    #[serde(default)]
    content: Presence,
    #[serde(default)]
    timestamp: Presence,
    #[serde(borrow, default)]
    tool_calls: Vec<CallProbe<'a>>,
    #[serde(borrow, default, rename = "attachments")]
    _attachments: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "author")]
    _author: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "source")]
    _source: Option<&'a RawValue>,
}

/// Says of a field that it is there, whatever its value.
#[derive(Default)]
struct Presence(bool);

impl<'de> Deserialize<'de> for Presence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self(true))
    }
}

/// Returns the role of a message, and the characters of its content and tool parameters. `None` if the message is not in our form,
/// or invalid.
pub(crate) fn skim(json: &[u8]) -> Option<(Role, u64)> {
    let rest = json.strip_prefix(br#"{"id":""#)?;
    let (id, rest) = rest.split_at(memchr(b'"', rest)?);
    if !id.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'\\') {
        return None;
    }
    let rest = rest.strip_prefix(br#"","role":""#)?;
    let (role, rest) = rest.split_at(memchr(b'"', rest)?);
    let role = match role {
        b"user" => Role::User,
        b"assistant" => Role::Assistant,
        b"tool_result" => Role::ToolResult,
        b"system" => Role::System,
        _ => return None,
    };
    let content = rest.strip_prefix(br#"","content":""#)?;
    if let Some((chars, time)) = count_before_time(content) {
        return is_time(time).then_some((role, chars));
    }
    let (chars, rest) = count_string(content)?;
    let rest = rest.strip_prefix(br#","timestamp":""#)?;
    let (time, rest) = rest.split_at(memchr(b'"', rest)?);
    if !is_time(time) {
        return None;
    }
    match rest {
        br#""}"# => Some((role, chars)),
        [b'"', b',', rest @ ..] if rest.starts_with(b"\"") && rest.len() <= MAX_REST_BYTES => {
            Some((role, chars + count_params(rest)?))
        }
        _ => None,
    }
}

/// Counts the characters of the tool parameters in the fields behind the time.
fn count_params(rest: &[u8]) -> Option<u64> {
    let mut object = Vec::with_capacity(rest.len() + 1);
    object.push(b'{');
    object.extend_from_slice(rest);
    let RestProbe { id, role, content, timestamp, tool_calls, .. } = serde_json::from_slice(&object).ok()?;
    if [id, role, content, timestamp].iter().any(|field| field.0) {
        return None;
    }
    Some(tool_calls.iter().map(|call| call.params.get().chars().count() as u64).sum())
}

/// Counts the characters of a content that only the time follows, and returns the time: the usual message. `None` if there is more
/// behind the time, or anything in the content that is not ASCII or a plain escape.
fn count_before_time(text: &[u8]) -> Option<(u64, &[u8])> {
    const BETWEEN: &[u8] = br#"","timestamp":""#;
    let text = text.strip_suffix(br#""}"#)?;
    // The first quote from the end.
    let start = text.len() - text.iter().rev().take(40).position(|byte| *byte == b'"')?;
    let inner = text[..start].strip_suffix(BETWEEN)?;
    let escapes = count_plain_escapes(inner)?;
    Some(((inner.len() - escapes) as u64, &text[start..]))
}

/// Counts the escapes of a string without its quotes. `None` if it may be invalid, is not ASCII, or has escapes that are no
/// single character or follow each other. Compares each byte with the next one and has no other branch, so that many are compared
/// at once.
fn count_plain_escapes(inner: &[u8]) -> Option<usize> {
    let (Some(first), Some(last)) = (inner.first(), inner.last()) else { return Some(0) };
    if *first == b'"' || *last == b'\\' || !matches!(last, b' '..=b'~') {
        return None;
    }
    let (mut escapes, mut wrong) = (0, 0_u8);
    // So short that a byte holds the number of escapes.
    for (bytes, next) in inner[..inner.len() - 1].chunks(128).zip(inner[1..].chunks(128)) {
        let mut here = 0_u8;
        for (byte, next) in bytes.iter().zip(next) {
            let escape = u8::from(*byte == b'\\');
            let quote = u8::from(*next == b'"');
            let plain = quote
                | u8::from(*next == b'n')
                | u8::from(*next == b't')
                | u8::from(*next == b'r')
                | u8::from(*next == b'b')
                | u8::from(*next == b'f')
                | u8::from(*next == b'/');
            wrong |= (escape & (plain ^ 1)) | (quote & (escape ^ 1)) | u8::from(*byte < b' ') | (*byte >> 7);
            here += escape;
        }
        escapes += usize::from(here);
    }
    (wrong == 0).then_some(escapes)
}

/// Counts the characters of a JSON string whose quote at the start was removed. Returns what follows the string as well.
fn count_string(text: &[u8]) -> Option<(u64, &[u8])> {
    let (mut at, mut escapes) = (0, 0);
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            break;
        }
        // An escape with a number may be half of a character.
        if !matches!(text.get(at + 1)?, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') {
            return None;
        }
        (at, escapes) = (at + 2, escapes + 1);
    }
    let (inner, rest) = (&text[..at], &text[at + 1..]);
    // Without a branch for each byte, so that many are compared at once.
    if inner.iter().fold(false, |control, byte| control | (*byte < b' ')) {
        return None;
    }
    let chars = if inner.is_ascii() { inner.len() } else { std::str::from_utf8(inner).ok()?.chars().count() };
    Some(((chars - escapes) as u64, rest))
}

/// Returns true for a time as [`Timestamp`] reads it. A time in UTC whose numbers are beyond doubt needs no parser.
fn is_time(text: &[u8]) -> bool {
    let is_plain = text.len() >= 20
        && text.iter().zip(b"0000-00-00T00:00:00").all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            _ => byte == form,
        })
        && text[0] != b'0'
        && (b"01"..=b"12").contains(&&[text[5], text[6]])
        && (b"01"..=b"28").contains(&&[text[8], text[9]])
        && (b"00"..=b"23").contains(&&[text[11], text[12]])
        && (text[14] < b'6' && text[17] < b'6')
        && match &text[19..] {
            b"Z" => true,
            [b'.', digits @ .., b'Z'] => (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit),
            _ => false,
        };
    is_plain || std::str::from_utf8(text).is_ok_and(|text| !text.contains('\\') && text.parse::<Timestamp>().is_ok())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::stored_message::StoredMessage;

    const TIME: &str = "2026-02-12T09:00:00Z";

    fn line(id: &str, role: &str, content: &str, time: &str, rest: &str) -> String {
        format!(r#"{{"id":"{id}","role":"{role}","content":"{content}","timestamp":"{time}"{rest}}}"#)
    }

    /// Returns what a message has if it is parsed as a whole.
    fn parsed(line: &str) -> Option<(Role, u64)> {
        StoredMessage::parse_whole(Bytes::copy_from_slice(line.as_bytes()))
            .ok()
            .map(|message| (message.role(), message.chars()))
    }

    #[test]
    fn messages_in_our_form_are_read_as_the_parser_reads_them() {
        let contents = [
            "",
            "a",
            "a\u{7f}",
            r#"\"a\/\b\f\n\r\t"#,
            &r#"said \"yes\"\n"#.repeat(40),
            r#"\"\\\/\b\f\n\r\t"#,
            "é🎉",
            "\u{7f}",
            r"a\\",
        ];
        let calls = r#","tool_calls":[{"id":"c","name":"view","params":{"é":1e400}}],"later":{"id":"x"}"#;
        for role in ["user", "assistant", "tool_result", "system"] {
            for content in contents {
                for rest in ["", calls, r#","source":{"kind":"cli"},"generated":true"#] {
                    let line = line("01a2", role, content, TIME, rest);
                    assert!(skim(line.as_bytes()).is_some(), "{line}");
                    assert_eq!(skim(line.as_bytes()), parsed(&line), "{line}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_read_that_the_parser_refuses_or_reads_otherwise() {
        let plain = line("1", "user", "text", TIME, "");
        let mut lines = vec![
            line("1", "robot", "a", TIME, ""),
            line("1", "user", r"\x", TIME, ""),
            line("1", "user", r"\u00e9", TIME, ""),
            line("1", "user", "a\u{1}", TIME, ""),
            line("1", "user", "a\u{1}a", TIME, ""),
            line("1", "user", "a\"", TIME, ""),
            line("1", "user", "\"a", TIME, ""),
            line("1", "user", "a\"b", TIME, ""),
            line("1", "user", r"a\", TIME, ""),
            line("1", "user", r"a\x", TIME, ""),
            line("1", "user", r"a\\x", TIME, ""),
            line("1", "user", r#"a","timestamp":"2026-02-12T09:00:00Z"#, TIME, ""),
            line("1", "user", r#"a\","timestamp":"2026-02-12T09:00:00Z"#, "\"}", ""),
            line("1", "user", "a", "yesterday", ""),
            line("1", "user", "a", "2026-02-12T09:00:00\\u005a", ""),
            line("1\u{1}", "user", "a", TIME, ""),
            line("1", "user", "a", TIME, r#","role":"user""#),
            line("1", "user", "a", TIME, r#","content":null"#),
            line("1", "user", "a", TIME, r#","tool_calls":[{"id":"c"}]"#),
            line("1", "user", "a", TIME, ","),
            line("1", "user", "a", TIME, ",]"),
            format!("{plain} "),
            format!("{plain}x"),
            plain.replace("\"id\"", "\"name\""),
        ];
        lines.extend((0..plain.len()).map(|end| plain[..end].to_owned()));
        for line in lines {
            assert!(skim(line.as_bytes()).is_none_or(|found| Some(found) == parsed(&line)), "{line}");
        }
        let mut broken = plain.into_bytes();
        let at = memchr(b't', &broken[30..]).unwrap() + 30;
        broken[at] = 0xff;
        assert_eq!(skim(&broken), None);
    }

    #[test]
    fn a_time_is_read_exactly_if_the_parser_reads_it() {
        for time in [
            "2026-02-12T09:00:00Z",
            "2026-02-12T09:00:00.123456789Z",
            "2026-02-12T09:00:00.1234567890Z",
            "2026-02-12T09:00:00.Z",
            "2026-02-12T09:00:00",
            "2026-02-12T09:00:00+01:00",
            "2026-02-30T09:00:00Z",
            "2026-02-31T09:00:00Z",
            "2024-02-29T09:00:00Z",
            "2026-13-12T09:00:00Z",
            "2026-00-12T09:00:00Z",
            "2026-02-00T09:00:00Z",
            "2026-02-12T24:00:00Z",
            "2026-02-12T19:60:00Z",
            "2026-02-12T19:00:60Z",
            "2026-02-12T29:00:00Z",
            "0026-02-12T09:00:00Z",
            "9999-12-28T23:59:59Z",
            "2026-02-12 09:00:00Z",
            "2026-2-12T09:00:00Z",
            "",
        ] {
            assert_eq!(is_time(time.as_bytes()), time.parse::<Timestamp>().is_ok(), "{time}");
        }
    }
}
