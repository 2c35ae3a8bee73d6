//! Escapes characters that an editor, a terminal or another reader of Markdown would change or hide.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Prefixes of the markers around the summary and the data. They must not occur in the text of a message.
const MARKERS: [&str; 2] = ["<!-- SESSION_SUMMARY_", super::DATA_START];

/// Returns whether `text` contains anything that must be escaped.
#[must_use]
pub(super) fn needs_escape(text: &str) -> bool {
    text.contains(is_hidden) || MARKERS.iter().any(|marker| text.contains(marker))
}

fn is_hidden(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Replaces unsafe characters by `\r`, `\u{...}` or `\\`. The number of lines stays the same.
#[must_use]
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\r' => out.push_str("\\r"),
            '<' if MARKERS.iter().any(|marker| text[at..].starts_with(marker)) => out.push_str("\\u{3c}"),
            c if is_hidden(c) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// Reverses [`escape`]. A backslash that begins no known sequence is kept.
#[must_use]
pub(super) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let (meant, length) = match rest.as_bytes().first() {
            Some(b'\\') => ('\\', 1),
            Some(b'r') => ('\r', 1),
            _ => parse_unicode_escape(rest).unwrap_or(('\\', 0)),
        };
        out.push(meant);
        rest = &rest[length..];
    }
    out + rest
}

/// Parses `u{...}` at the start of `text`. Returns the character and the length of the sequence in bytes.
fn parse_unicode_escape(text: &str) -> Option<(char, usize)> {
    let digits = text.strip_prefix("u{")?.split('}').next()?;
    let c = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
    text[2 + digits.len()..].starts_with('}').then_some((c, digits.len() + 3))
}

/// Escapes `<!--` in `text` for a visible line, so that no comment begins there.
#[must_use]
pub(super) fn escape_comments(text: &str) -> Cow<'_, str> {
    match text.contains("<!--") {
        true => text.replace("<!--", "<!\\--").into(),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_comes_back() {
        for text in [
            "",
            "a\\r\\u{0}\r\n\0\u{85}\u{2028}",
            "<!-- SESSION_SUMMARY_END -->",
            "<!-- chorus data",
            "\\u{3c}!-- x",
            "\\",
            "é\\u{",
        ] {
            let escaped = escape(text);
            assert!(!needs_escape(&escaped), "{escaped}");
            assert_eq!(unescape(&escaped), text);
            assert_eq!(escaped.lines().count(), text.split('\n').count().max(1) - usize::from(text.is_empty()));
        }
        assert_eq!(unescape("\\n \\u{110000} \\u{zz} \\u{41"), "\\n \\u{110000} \\u{zz} \\u{41");
    }
}
