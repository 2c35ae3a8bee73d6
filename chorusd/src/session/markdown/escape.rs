//! Texts whose characters an editor, a terminal or another reader would not leave alone, spelled out.

use std::borrow::Cow;
use std::fmt::Write as _;

/// What begins the marks around the summary: no reader may meet one in what was said.
const SUMMARY_MARKER: &str = "<!-- SESSION_SUMMARY_";

/// Whether `text` cannot stand in a file as it is.
#[must_use]
pub fn needs_escape(text: &str) -> bool {
    text.contains(is_hidden) || text.contains(SUMMARY_MARKER)
}

fn is_hidden(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// `text` on as many lines as before, with `\r`, `\u{...}` and `\\` for what cannot stand as it is.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\r' => out.push_str("\\r"),
            '<' if text[at..].starts_with(SUMMARY_MARKER) => out.push_str("\\u{3c}"),
            c if is_hidden(c) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// What [`escape`] was given. A backslash that means nothing stays one.
#[must_use]
pub fn unescape(text: &str) -> String {
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

/// The character of `u{...}` at the start of `text`, and how long that is.
fn parse_unicode_escape(text: &str) -> Option<(char, usize)> {
    let digits = text.strip_prefix("u{")?.split('}').next()?;
    let c = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
    text[2 + digits.len()..].starts_with('}').then_some((c, digits.len() + 3))
}

/// `text` for a line that is only read by people: no comment begins in it.
#[must_use]
pub fn escape_comments(text: &str) -> Cow<'_, str> {
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
        for text in
            ["", "a\\r\\u{0}\r\n\0\u{85}\u{2028}", "<!-- SESSION_SUMMARY_END -->", "\\u{3c}!-- x", "\\", "é\\u{"]
        {
            let escaped = escape(text);
            assert!(!needs_escape(&escaped), "{escaped}");
            assert_eq!(unescape(&escaped), text);
            assert_eq!(escaped.lines().count(), text.split('\n').count().max(1) - usize::from(text.is_empty()));
        }
        assert_eq!(unescape("\\n \\u{110000} \\u{zz} \\u{41"), "\\n \\u{110000} \\u{zz} \\u{41");
    }
}
