//! Escapes text for the page and makes invisible characters visible.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes `text` for HTML, including attributes.
pub(super) fn escape(text: &str) -> String {
    let text = show_invisible(text);
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Replaces invisible characters, and those that reorder others, by a visible symbol. Line ends, tabs and the joiners
/// inside emoji stay.
#[must_use]
pub fn show_invisible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_invisible) {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\0'..='\u{1f}' if is_invisible(c) => out.extend(char::from_u32(0x2400 + c as u32)),
            '\u{7f}' => out.push('␡'),
            c if is_invisible(c) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "⟨U+{:04X}⟩", c as u32);
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn is_invisible(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Joins the lines of `text` and truncates the result to `most` characters.
pub(super) fn truncate_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > most * 4 {
            break;
        }
    }
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_markup_and_nothing_hides() {
        assert_eq!(escape("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
        assert_eq!(escape("a\r\nb\rc\0\u{202e}\u{9b}\u{7f}"), "a\nb␍c␀⟨U+202E⟩⟨U+009B⟩␡");
        assert_eq!(escape("❤\u{fe0f} 👩\u{200d}💻\tx"), "❤\u{fe0f} 👩\u{200d}💻\tx");
        assert_eq!(truncate_line("a \n b  c", 3), "a b…");
    }
}
