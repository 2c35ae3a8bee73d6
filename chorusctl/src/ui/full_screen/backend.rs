//! Writes cells to the terminal.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};

use super::modes::TerminalModes;

/// The terminal as ratatui writes to it. Nothing is written while another program has the terminal.
#[derive(Debug)]
pub(super) struct AnsiBackend {
    modes: Arc<TerminalModes>,
    /// Escape sequences and text that are not written yet.
    pending: String,
    has_color: bool,
}

impl AnsiBackend {
    pub(super) fn new(modes: Arc<TerminalModes>, has_color: bool) -> Self {
        Self { modes, pending: String::new(), has_color }
    }

    fn move_to(&mut self, x: u16, y: u16) {
        // Writing to a String cannot fail.
        let _ = write!(self.pending, "\x1b[{};{}H", y.saturating_add(1), x.saturating_add(1));
    }

    fn write_style(&mut self, modifier: Modifier, color: Color) {
        self.pending.push_str("\x1b[0");
        for (set, code) in [
            (Modifier::BOLD, ";1"),
            (Modifier::DIM, ";2"),
            (Modifier::ITALIC, ";3"),
            (Modifier::UNDERLINED, ";4"),
            (Modifier::REVERSED, ";7"),
        ] {
            if modifier.contains(set) {
                self.pending.push_str(code);
            }
        }
        if let Some(code) = color_code(color).filter(|_| self.has_color) {
            let _ = write!(self.pending, ";{code}");
        }
        self.pending.push('m');
    }
}

/// Returns the code of the colors that [`crate::ui::Style`] has.
fn color_code(color: Color) -> Option<u8> {
    match color {
        Color::Red => Some(31),
        Color::Green => Some(32),
        Color::Magenta => Some(35),
        Color::Cyan => Some(36),
        _ => None,
    }
}

impl Backend for AnsiBackend {
    type Error = io::Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, content: I) -> io::Result<()> {
        let (mut next, mut style) = (None, None);
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.move_to(x, y);
            }
            if style != Some((cell.modifier, cell.fg)) {
                self.write_style(cell.modifier, cell.fg);
                style = Some((cell.modifier, cell.fg));
            }
            self.pending.push_str(cell.symbol());
            // After a wide character the cursor is moved: terminals differ in what they take for wide.
            next = Some((x.saturating_add(1), y));
        }
        if style.is_some() {
            self.pending.push_str("\x1b[0m");
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.pending.push_str("\x1b[?25l");
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.pending.push_str("\x1b[?25h");
        Ok(())
    }

    /// Is never needed for the whole screen, so the terminal is not asked.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        self.move_to(x, y);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.pending.push_str("\x1b[0m\x1b[2J");
        Ok(())
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.pending.push_str(match region {
            ClearType::All => "\x1b[2J",
            ClearType::AfterCursor => "\x1b[J",
            ClearType::BeforeCursor => "\x1b[1J",
            ClearType::CurrentLine => "\x1b[2K",
            ClearType::UntilNewLine => "\x1b[K",
        });
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        self.modes.size()
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.modes.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        self.modes.write_if_active(pending.as_bytes())
    }
}
