//! A line of text that is typed.

use chorus_terminal_text::text;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation as _;

/// The limit on bytes of a text that is typed or pasted.
const MAX_BYTES: usize = 256 << 10;

/// The message about a text that does not fit.
pub(crate) const TOO_LONG: &str = "not pasted: the text would be longer than 256 KiB";

/// A line with a cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LineEditor {
    text: String,
    /// In bytes.
    cursor: usize,
}

impl LineEditor {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Puts `text` in, with the cursor behind it.
    pub(crate) fn set(&mut self, text: String) {
        self.cursor = text.len();
        self.text = text;
    }

    /// Inserts a pasted text. Line breaks stay. Returns false if it is too long: then nothing is inserted.
    pub(crate) fn paste(&mut self, pasted: &str) -> bool {
        let pasted = pasted.replace("\r\n", "\n").replace('\r', "\n");
        let fits = self.text.len() + pasted.len() <= MAX_BYTES;
        if fits {
            self.text.insert_str(self.cursor, &pasted);
            self.cursor += pasted.len();
        }
        fits
    }

    /// Handles a key. Returns false if it has no meaning here.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> bool {
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if has_control => self.remove(0),
            KeyCode::Char('w') if has_control => self.remove(self.word_start()),
            KeyCode::Char('a') if has_control => self.cursor = 0,
            KeyCode::Char('e') if has_control => self.cursor = self.text.len(),
            // What some terminals send for Backspace.
            KeyCode::Char('h') if has_control => self.remove(self.before()),
            KeyCode::Enter if key.modifiers.contains(KeyModifiers::ALT) => _ = self.paste("\n"),
            KeyCode::Char(c) if !has_control && !key.modifiers.contains(KeyModifiers::ALT) => {
                return self.paste(c.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Backspace => self.remove(self.before()),
            KeyCode::Delete => {
                let end = self.after();
                self.text.replace_range(self.cursor..end, "");
            }
            KeyCode::Left => self.cursor = self.before(),
            KeyCode::Right => self.cursor = self.after(),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => return false,
        }
        true
    }

    /// Removes what is between `start` and the cursor.
    fn remove(&mut self, start: usize) {
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }

    fn before(&self) -> usize {
        let last = self.text[..self.cursor].grapheme_indices(true).next_back();
        last.map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        let next = self.text[self.cursor..].graphemes(true).next();
        self.cursor + next.map_or(0, str::len)
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before.rfind(char::is_whitespace).map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8))
    }

    /// Returns what of the line is visible in `columns`, and the column of the cursor in it. Line breaks and invisible characters
    /// are visible signs.
    pub(crate) fn shown(&self, columns: usize) -> (String, usize) {
        let visible = |text: &str| chorus_terminal_text::sanitize::multi_line(text).replace(['\n', '\t'], "␤");
        let (before, after) = (visible(&self.text[..self.cursor]), visible(&self.text[self.cursor..]));
        let room = columns.saturating_sub(1);
        let start = text::truncate_start(&before, room).into_owned();
        let column = text::width(&start);
        let mut line = start;
        for grapheme in after.graphemes(true) {
            if text::width(&line) + text::width(grapheme) > room {
                break;
            }
            line.push_str(grapheme);
        }
        (line, column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press_keys(editor: &mut LineEditor, keys: &[(KeyCode, bool)]) {
        for (code, has_control) in keys {
            let modifiers = if *has_control { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
            editor.on_key(KeyEvent::new(*code, modifiers));
        }
    }

    #[test]
    fn keys_edit_the_line() {
        let mut editor = LineEditor::default();
        editor.paste("one two\r\nthrée");
        press_keys(&mut editor, &[(KeyCode::Backspace, false), (KeyCode::Left, false), (KeyCode::Char('x'), false)]);
        assert_eq!((editor.text(), editor.shown(80)), ("one two\nthrxé", ("one two␤thrxé".into(), 12)));
        press_keys(&mut editor, &[(KeyCode::Char('w'), true), (KeyCode::Char('w'), true)]);
        assert_eq!(editor.text(), "one é");
        press_keys(&mut editor, &[(KeyCode::Char('e'), true), (KeyCode::Char('u'), true)]);
        assert_eq!(editor.text(), "");
    }

    #[test]
    fn a_long_line_shows_the_cursor() {
        let mut editor = LineEditor::default();
        editor.set("你好".repeat(20));
        let (shown, column) = editor.shown(10);
        assert!(shown.starts_with('…') && text::width(&shown) <= 9 && column <= 9, "{shown} {column}");
        press_keys(&mut editor, &[(KeyCode::Home, false)]);
        assert_eq!(editor.shown(10), ("你好你好".into(), 0));
    }
}
