//! Sanitizes untrusted text, so that a conversation cannot control the terminal it is shown on.
//!
//! Text output is sanitized in pipes, too, because these often end in a terminal (`| less -R`, `| head`). Exceptions
//! are a model's reply and exported sessions, which a pipe receives unchanged. JSON output has the original characters,
//! escaped on a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces control characters except newline and tab, and characters that reorder text, by visible signs. `\r\n`
/// becomes a newline.
#[must_use]
pub fn multi_line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            c if is_unsafe(c) => push_visible(c, &mut shown),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Sanitizes and joins to one line: every run of white space becomes one space.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&multi_line(word));
    }
    line
}

/// Escapes the characters in JSON that a terminal may interpret. The value stays the same.
#[must_use]
pub fn escape_json(json: &str) -> Cow<'_, str> {
    // Outside strings JSON contains only spaces, tabs and line breaks, which are not escaped here.
    let obeyed = |c: char| is_unsafe(c) && !c.is_ascii_whitespace();
    if !json.chars().any(obeyed) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if obeyed(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // Writing to a String cannot fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

fn is_unsafe(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        c if c.is_control() => true,
        // Embeddings, overrides and isolates, line and paragraph separators, invisible tags.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' => true,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

fn push_visible(c: char, shown: &mut String) {
    let picture = match c {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + c as u32),
        '\u{7f}' => Some('\u{2421}'),
        _ => None,
    };
    match picture {
        Some(picture) => shown.push(picture),
        None => {
            let _ = write!(shown, "<U+{:04X}>", c as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_not_copied() {
        assert!(matches!(multi_line("grüße 你好 👩‍👧 שלום\n\tx"), Cow::Borrowed(_)));
    }

    #[test]
    fn escape_sequences_lose_their_power() {
        assert_eq!(multi_line("\x1b[2J\x1b]0;title\x07"), "␛[2J␛]0;title␇");
        assert_eq!(multi_line("\u{9b}31m"), "<U+009B>31m");
        assert_eq!(multi_line("a\0b\x7fc\x08"), "a␀b␡c␈");
    }

    #[test]
    fn line_ends_are_told_from_lone_returns() {
        assert_eq!(multi_line("one\r\ntwo\rthree"), "one\ntwo␍three");
    }

    #[test]
    fn nothing_reorders_what_follows() {
        assert_eq!(multi_line("a\u{202e}txt.exe\u{2066}b"), "a<U+202E>txt.exe<U+2066>b");
    }

    #[test]
    fn one_line_folds_white_space() {
        assert_eq!(one_line("  a\n\n b\t\tc\x1b[0m "), "a b c␛[0m");
    }

    #[test]
    fn json_keeps_its_value() {
        let json = "{\"a\":\"x\u{9b}y\u{202e}\u{e0041}\u{7f}\"}\n";
        let shown = escape_json(json);
        assert_eq!(shown, "{\"a\":\"x\\u009by\\u202e\\udb40\\udc41\\u007f\"}\n");
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        assert_eq!(parse(json), parse(&shown));
    }
}
