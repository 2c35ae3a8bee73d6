//! Prints lines above the line that is being edited.
//!
//! The line editor's own means for that (`ExternalPrinter`) leaves typed characters unread while it waits. So the edited
//! line is recorded whenever it changes, and drawn again below what is printed, in the place where the editor left it.

#![expect(clippy::disallowed_types, reason = "the client does without chorus_base")]

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ui::{terminal, text};

/// Start and end of an update that a terminal shows at once.
const BEGIN_UPDATE: &str = "\x1b[?2026h";
const END_UPDATE: &str = "\x1b[?2026l";

/// The line that is being edited, as the screen shows it.
#[derive(Debug, Clone, Default)]
pub(super) struct EditedLine(Arc<Mutex<LineState>>);

#[derive(Debug, Default)]
struct LineState {
    prompt: String,
    line: String,
    /// Bytes of the line before the cursor.
    cursor: usize,
}

impl EditedLine {
    /// Starts a new line.
    pub(super) fn start(&self, prompt: &str) {
        *self.lock() = LineState { prompt: prompt.to_owned(), ..LineState::default() };
    }

    /// Records a change of the line.
    pub(super) fn set(&self, line: &str, cursor: usize) {
        let mut state = self.lock();
        state.line.clear();
        state.line.push_str(line);
        state.cursor = cursor;
    }

    /// Prints `lines` above the edited line.
    pub(super) fn print_above(&self, lines: &[String]) {
        let mut stdout = io::stdout().lock();
        let text = self.lock().render(lines, terminal::columns(&stdout));
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }

    fn lock(&self) -> MutexGuard<'_, LineState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineState {
    /// Returns what replaces the edited line by `lines` and draws it again below them.
    fn render(&self, lines: &[String], columns: usize) -> String {
        let Self { prompt, line, cursor } = self;
        let before = line.get(..*cursor).unwrap_or(line);
        let (cursor_row, cursor_column) = position(&format!("{prompt}{before}"), columns);
        let (end_row, end_column) = position(&format!("{prompt}{line}"), columns);
        let up = |rows: usize| if rows > 0 { format!("\x1b[{rows}A") } else { String::new() };
        let right = if cursor_column > 0 { format!("\x1b[{cursor_column}C") } else { String::new() };
        let line = line.replace('\n', "\r\n");
        // A line that ends at the right margin has the cursor in the next row.
        let wrap = if end_column == 0 && end_row > 0 && !line.ends_with('\n') { "\r\n" } else { "" };
        format!(
            "{BEGIN_UPDATE}{}\r\x1b[J{}\r\n{prompt}{line}{wrap}{}\r{right}{END_UPDATE}",
            up(cursor_row),
            lines.join("\r\n"),
            up(end_row - cursor_row.min(end_row)),
        )
    }
}

/// Returns the row and the column behind a text on a terminal.
fn position(text: &str, columns: usize) -> (usize, usize) {
    let columns = columns.max(1);
    let mut lines = text.split('\n').map(text::width);
    let last = lines.next_back().unwrap_or(0);
    let rows: usize = lines.map(|width| width / columns + 1).sum();
    (rows + last / columns, last % columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_where_the_terminal_shows_it() {
        for (text, due) in [("a> ", (0, 3)), ("a> 1234567", (1, 0)), ("a> 世界世界", (1, 1)), ("a> one\n…", (1, 1))]
        {
            assert_eq!(position(text, 10), due, "{text:?}");
        }
    }

    #[test]
    fn the_line_is_drawn_again_below_what_is_printed() {
        let edited = EditedLine::default();
        edited.start("a> ");
        edited.set("half a line", 4);
        let text = edited.lock().render(&["one".into(), "two".into()], 80);
        assert_eq!(text, "\x1b[?2026h\r\x1b[Jone\r\ntwo\r\na> half a line\r\x1b[7C\x1b[?2026l");
        let narrow = edited.lock().render(&["one".into()], 5);
        assert_eq!(narrow, "\x1b[?2026h\x1b[1A\r\x1b[Jone\r\na> half a line\x1b[1A\r\x1b[2C\x1b[?2026l");
    }
}
