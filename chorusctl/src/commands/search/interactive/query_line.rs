//! The line in which the query is typed.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::ui::text;

/// Longer queries are not typed.
const MAX_BYTES: usize = 1000;

/// Shortest word that is also searched for as the start of longer ones.
const MIN_PREFIX_CHARS: usize = 2;

/// The text, and the cursor as an index into it.
#[derive(Debug, Default)]
pub(super) struct QueryLine {
    text: String,
    cursor: usize,
}

impl QueryLine {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Inserts text at the cursor. Line breaks and tabs become spaces, other control characters are left out.
    pub(super) fn insert(&mut self, text: &str) {
        for c in text.chars() {
            let c = if c.is_whitespace() { ' ' } else { c };
            if !c.is_control() && self.text.len() + c.len_utf8() <= MAX_BYTES {
                self.text.insert(self.cursor, c);
                self.cursor += c.len_utf8();
            }
        }
    }

    pub(super) fn delete_before(&mut self) {
        let start = self.start_of_previous();
        self.delete_from(start);
    }

    pub(super) fn delete_after(&mut self) {
        let end = self.end_of_next();
        self.text.drain(self.cursor..end);
    }

    pub(super) fn delete_word(&mut self) {
        let before = self.text[..self.cursor].trim_end();
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
        self.delete_from(start);
    }

    pub(super) fn delete_to_start(&mut self) {
        self.delete_from(0);
    }

    pub(super) fn delete_to_end(&mut self) {
        self.text.truncate(self.cursor);
    }

    fn delete_from(&mut self, start: usize) {
        self.text.drain(start..self.cursor);
        self.cursor = start;
    }

    pub(super) fn move_left(&mut self) {
        self.cursor = self.start_of_previous();
    }

    pub(super) fn move_right(&mut self) {
        self.cursor = self.end_of_next();
    }

    pub(super) fn move_to_start(&mut self) {
        self.cursor = 0;
    }

    pub(super) fn move_to_end(&mut self) {
        self.cursor = self.text.len();
    }

    fn start_of_previous(&self) -> usize {
        self.text[..self.cursor].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn end_of_next(&self) -> usize {
        self.cursor + self.text[self.cursor..].graphemes(true).next().map_or(0, str::len)
    }

    /// Returns the part of the text around the cursor that fits into `columns`, and the column of the cursor in it.
    pub(super) fn visible(&self, columns: usize) -> (String, usize) {
        // One column is for the cursor.
        let before = text::truncate_start(&self.text[..self.cursor], columns.saturating_sub(1));
        let column = text::width(&before);
        let after = text::truncate(&self.text[self.cursor..], columns.saturating_sub(column));
        (format!("{before}{after}"), column)
    }

    /// Returns the query to search for; `None` if it has no word to find. A word that is being typed is also the start of others.
    pub(super) fn query(&self) -> Option<String> {
        let query = self.text.trim();
        if query.split_whitespace().all(|word| word.starts_with('-')) {
            return None;
        }
        let last = query.rsplit(char::is_whitespace).next().unwrap_or_default();
        let is_word = last.chars().count() >= MIN_PREFIX_CHARS && last.chars().all(char::is_alphanumeric);
        let is_quoted = query.matches('"').count() % 2 == 1;
        if is_word && !is_quoted && self.text.ends_with(last) {
            return Some(format!("{query} {last}*"));
        }
        Some(query.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> QueryLine {
        let mut line = QueryLine::default();
        line.insert(text);
        line
    }

    #[test]
    fn the_last_word_is_also_the_start_of_others() {
        let query = |text: &str| line(text).query();
        assert_eq!(query("drop red").as_deref(), Some("drop red red*"));
        assert_eq!(query("drop red ").as_deref(), Some("drop red"));
        assert_eq!(query("red -cache").as_deref(), Some("red -cache"));
        assert_eq!(query("\"connection po").as_deref(), Some("\"connection po"));
        assert_eq!(query("time*").as_deref(), Some("time*"));
        assert_eq!(query("r").as_deref(), Some("r"));
        assert_eq!([query(""), query("  "), query("-cache -x")], [None, None, None]);
    }

    #[test]
    fn characters_are_deleted_as_they_are_seen() {
        let mut line = line("naïve 👩‍👧x");
        line.move_left();
        line.delete_before();
        assert_eq!(line.text(), "naïve x");
        line.delete_word();
        assert_eq!(line.text(), "x");
        line.delete_after();
        assert_eq!(line.text(), "");
        line.insert("one two\tthree\n\u{1b}");
        assert_eq!(line.text(), "one two three ");
        line.delete_word();
        assert_eq!(line.text(), "one two ");
        line.move_to_start();
        line.move_right();
        line.delete_to_start();
        line.delete_to_end();
        assert_eq!(line.text(), "");
        line.delete_before();
        line.delete_word();
        line.move_left();
        line.move_right();
        assert_eq!(line.text(), "");
    }

    #[test]
    fn the_part_with_the_cursor_is_visible() {
        let mut line = line("你好 hello world");
        assert_eq!(line.visible(40), ("你好 hello world".into(), 16));
        assert_eq!(line.visible(8), ("… world".into(), 7));
        line.move_to_start();
        assert_eq!(line.visible(8), ("你好 he…".into(), 0));
        line.move_right();
        assert_eq!(line.visible(3), ("你…".into(), 2));
        assert_eq!(line.visible(0).1, 0);
        line.insert(&"x".repeat(2000));
        assert_eq!(line.text().len(), MAX_BYTES);
    }
}
