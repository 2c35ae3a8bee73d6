//! Measures, cuts, pads and wraps text in terminal columns.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Returns the width of `text` in terminal columns: the sum of its characters', as terminals and ratatui place them. Some letters are
/// narrower together, such as lam and alef, but only in a terminal that joins them.
#[must_use]
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(|grapheme| grapheme.width()).sum() }
}

/// Cuts `text` to at most `max` columns, ending in `…` if it was cut.
#[must_use]
pub fn truncate(text: &str, max: usize) -> Cow<'_, str> {
    if width(text) <= max {
        return Cow::Borrowed(text);
    }
    let Some(room) = max.checked_sub(1) else { return Cow::Borrowed("") };
    let mut cut = String::from(fitting_prefix(text, room).0.trim_end());
    cut.push('…');
    Cow::Owned(cut)
}

/// Cuts `text` to its last `max` columns, beginning with `…` if it was cut.
#[must_use]
pub fn truncate_start(text: &str, max: usize) -> Cow<'_, str> {
    let excess = width(text).saturating_sub(max);
    if excess == 0 {
        return Cow::Borrowed(text);
    }
    if max == 0 {
        return Cow::Borrowed("");
    }
    let mut removed = 0;
    // One more column for the sign.
    let start = text.grapheme_indices(true).find(|(_, grapheme)| {
        let enough = removed > excess;
        removed += width(grapheme);
        enough
    });
    Cow::Owned(format!("…{}", start.map_or("", |(at, _)| &text[at..])))
}

/// Appends `text` and the spaces that make it `columns` wide.
pub fn pad(line: &mut String, text: &str, columns: usize, right: bool) {
    let spaces = columns.saturating_sub(width(text));
    if right {
        line.extend(std::iter::repeat_n(' ', spaces));
    }
    line.push_str(text);
    if !right {
        line.extend(std::iter::repeat_n(' ', spaces));
    }
}

/// Wraps `text` into lines of at most `max` columns, at spaces if possible. Existing line breaks stay; continued lines
/// keep the indentation of their line.
#[must_use]
pub fn wrap(text: &str, max: usize) -> Vec<Cow<'_, str>> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        wrap_line(line, max.max(1), &mut lines);
    }
    lines
}

/// Wraps sentences of Chorus at words. A command in backticks stays on one line if it fits on one.
#[must_use]
pub fn wrap_sentence(text: &str, max: usize) -> String {
    // Stands for a space within backticks.
    const GLUE: char = '\u{e000}';
    if text.contains(GLUE) {
        return wrap(text, max).join("\n");
    }
    let mut glued = String::with_capacity(text.len());
    for line in text.split('\n') {
        let parts: Vec<&str> = line.split('`').collect();
        for (at, part) in parts.iter().enumerate() {
            // An even number of backticks: the odd parts are between two of them.
            let quoted = at % 2 == 1 && at + 1 < parts.len() && width(part) + 2 <= max;
            glued.push_str(&if quoted { part.replace(' ', &GLUE.to_string()) } else { (*part).to_owned() });
            if at + 1 < parts.len() {
                glued.push('`');
            }
        }
        glued.push('\n');
    }
    glued.pop();
    wrap(&glued, max).join("\n").replace(GLUE, " ")
}

fn wrap_line<'a>(line: &'a str, max: usize, lines: &mut Vec<Cow<'a, str>>) {
    if width(line) <= max && !line.contains('\t') {
        return lines.push(Cow::Borrowed(line));
    }
    let line = line.replace('\t', "    ");
    let indent = line.len() - line.trim_start_matches(' ').len();
    // Drop an indentation that would leave too little room.
    let indent = if indent * 2 > max { 0 } else { indent };
    let mut rest = line.as_str();
    let mut first = true;
    while !rest.is_empty() {
        let hang = if first { 0 } else { indent };
        let (fits, _) = fitting_prefix(rest, max - hang);
        let cut = match fits.rfind(' ') {
            _ if fits.len() == rest.len() => rest.len(),
            // Break at a space directly after the text that fits.
            _ if rest[fits.len()..].starts_with(' ') => fits.len(),
            // Break a word that fits on no line here, rather than leave this line half empty.
            Some(space)
                if !fits[..space].trim().is_empty()
                    && (width(&fits[..space]) * 2 >= max || {
                        let word = rest[space + 1..].split(' ').next().unwrap_or_default();
                        width(word) + indent <= max
                    }) =>
            {
                space
            }
            // A single character is wider than the line.
            _ if fits.is_empty() => rest.graphemes(true).next().map_or(rest.len(), str::len),
            _ => fits.len(),
        };
        let mut shown = " ".repeat(hang);
        shown.push_str(rest[..cut].trim_end());
        lines.push(Cow::Owned(shown));
        rest = rest[cut..].trim_start_matches(' ');
        first = false;
    }
    if first {
        lines.push(Cow::Borrowed(""));
    }
}

/// Splits `text` into pieces of at most `max` columns, wherever they are full. Joined they are the text.
#[must_use]
pub fn split_columns(text: &str, max: usize) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    loop {
        let (fits, _) = fitting_prefix(rest, max);
        // A single character is wider than `max`.
        let cut = if fits.is_empty() { rest.graphemes(true).next().map_or(0, str::len) } else { fits.len() };
        let (piece, after) = rest.split_at(cut);
        pieces.push(piece);
        if after.is_empty() {
            return pieces;
        }
        rest = after;
    }
}

/// Returns the longest prefix of `text` that fits into `max` columns, and its width.
fn fitting_prefix(text: &str, max: usize) -> (&str, usize) {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        let wide = width(grapheme);
        if used + wide > max {
            return (&text[..at], used);
        }
        used += wide;
    }
    (text, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!((width("abc"), width("你好"), width("👩‍👧")), (3, 4, 2));
    }

    #[test]
    fn letters_that_may_be_joined_are_counted_one_by_one() {
        let text = "\u{644}\u{627}".repeat(3);
        assert_eq!((width(&text), width("\u{644}\u{627}")), (6, 2));
        assert_eq!((truncate(&text, 6), truncate(&text, 4)), (text.as_str().into(), "\u{644}\u{627}\u{644}…".into()));
    }

    #[test]
    fn truncation_never_exceeds_the_room() {
        assert_eq!(truncate("hello", 5), "hello");
        assert_eq!(truncate("hello world", 7), "hello…");
        assert_eq!(truncate("你好世界", 5), "你好…");
        assert_eq!(truncate("你好世界", 4), "你…");
        assert_eq!(truncate("family 👩‍👧 here", 9), "family…");
        assert_eq!(truncate("abc", 0), "");
    }

    #[test]
    fn truncation_keeps_the_end_where_it_is_wanted() {
        assert_eq!(truncate_start("hello", 5), "hello");
        assert_eq!(truncate_start("hello world", 6), "…world");
        assert_eq!(truncate_start("你好世界", 5), "…世界");
        assert_eq!(truncate_start("abc", 0), "");
    }

    #[test]
    fn padding_looks_at_columns() {
        let mut line = String::new();
        pad(&mut line, "你", 4, false);
        pad(&mut line, "7", 3, true);
        assert_eq!(line, "你    7");
    }

    #[test]
    fn a_command_in_backticks_is_not_broken() {
        assert_eq!(
            wrap_sentence("see the whole: `chorusctl show 16` now", 30),
            "see the whole:\n`chorusctl show 16` now"
        );
        assert_eq!(wrap_sentence("it's a `b c d e f g h`", 10), "it's a `b\nc d e f g\nh`");
        assert_eq!(wrap_sentence("one ` two", 6), "one `\ntwo");
    }

    #[test]
    fn wrapping_breaks_at_spaces_and_keeps_indentation() {
        assert_eq!(wrap("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrap("  - one two three", 9), ["  - one", "  two", "  three"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("a bcdefghijkl", 6), ["a bcde", "fghijk", "l"]);
        assert_eq!(wrap("a\n\nb", 9), ["a", "", "b"]);
        assert_eq!(wrap("你好世界", 5), ["你好", "世界"]);
        assert_eq!(wrap("你", 1), ["你"]);
        assert_eq!(wrap("\tx", 20), ["    x"]);
        assert_eq!(wrap("     ", 3), [""]);
    }
}
