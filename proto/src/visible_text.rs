//! Makes every character of an untrusted text visible. Every interface shows approvals in this form.

use std::fmt::Write as _;

/// Replaces control characters, characters that reorder others and invisible characters by visible signs. A newline
/// stays, with `␤` before it to distinguish it from a line that the display wrapped. Nothing is left out.
#[must_use]
pub fn make_visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("␤\n"),
            '\0'..='\u{1f}' => shown.extend(char::from_u32(0x2400 + c as u32)),
            '\u{7f}' => shown.push('␡'),
            c if c.is_control() || is_invisible(c) => {
                // Writing to a String cannot fail.
                let _ = write!(shown, "<U+{:04X}>", c as u32);
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Returns true for characters that are invisible, look like a plain space, or change how others are displayed.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        // Spaces other than the ASCII space.
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
        // Zero-width characters and joiners.
        | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        // Marks, embeddings, overrides and isolates; line and paragraph separators.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
        // Annotations, placeholders, blank patterns, tags.
        | '\u{fff0}'..='\u{fffc}' | '\u{2800}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_seen_stays() {
        for text in ["", "git push origin main", "grüße 你好 שלום 👍", "a  b"] {
            assert_eq!(make_visible(text), text);
        }
    }

    #[test]
    fn what_cannot_is_shown() {
        assert_eq!(make_visible("ls\t\x1b[2K\r\x7f\0"), "ls␉␛[2K␍␡␀");
        assert_eq!(make_visible("a\u{202e}b\u{200b}c\u{a0}d\u{e0041}"), "a<U+202E>b<U+200B>c<U+00A0>d<U+E0041>");
        assert_eq!(make_visible("\u{9b}31m"), "<U+009B>31m");
        assert_eq!(make_visible("ls\nrm x\n"), "ls␤\nrm x␤\n");
    }

    #[test]
    fn nothing_that_drives_a_terminal_is_left() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let shown = make_visible(&format!("a{c}b"));
            let bad = |c: char| c != '\n' && (c.is_control() || is_invisible(c));
            assert!(!shown.contains(bad) && shown.starts_with('a') && shown.ends_with('b'), "{:04x}", c as u32);
        }
    }
}
