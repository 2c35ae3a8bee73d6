//! Pieces of lines, and rows that are filled one after another.

use std::borrow::Cow;

use chorus_terminal_text::{sanitize, text};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

/// Makes spans in the styles of Chorus. No information is in the color alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    has_color: bool,
}

impl Paint {
    pub(super) fn new(has_color: bool) -> Self {
        Self { has_color }
    }

    fn style(self, color: Option<Color>, modifier: Modifier) -> Style {
        let style = Style::new().add_modifier(modifier);
        match color.filter(|_| self.has_color) {
            Some(color) => style.fg(color),
            None => style,
        }
    }

    pub(super) fn plain<'a>(self, text: impl Into<Cow<'a, str>>) -> Span<'a> {
        Span::raw(text)
    }

    pub(super) fn strong<'a>(self, text: impl Into<Cow<'a, str>>) -> Span<'a> {
        Span::styled(text, self.style(None, Modifier::BOLD))
    }

    pub(super) fn faint<'a>(self, text: impl Into<Cow<'a, str>>) -> Span<'a> {
        Span::styled(text, self.style(None, Modifier::DIM))
    }

    pub(super) fn good<'a>(self, text: impl Into<Cow<'a, str>>) -> Span<'a> {
        Span::styled(text, self.style(Some(Color::Green), Modifier::empty()))
    }

    pub(super) fn bad<'a>(self, text: impl Into<Cow<'a, str>>) -> Span<'a> {
        Span::styled(text, self.style(Some(Color::Red), Modifier::BOLD))
    }

    pub(super) fn tool<'a>(self, text: impl Into<Cow<'a, str>>) -> Span<'a> {
        Span::styled(text, self.style(Some(Color::Cyan), Modifier::empty()))
    }

    pub(super) fn user<'a>(self, text: impl Into<Cow<'a, str>>) -> Span<'a> {
        Span::styled(text, self.style(Some(Color::Green), Modifier::BOLD))
    }

    pub(super) fn agent<'a>(self, text: impl Into<Cow<'a, str>>) -> Span<'a> {
        Span::styled(text, self.style(Some(Color::Magenta), Modifier::BOLD))
    }
}

/// Returns a text on one line, sanitized, cut and padded to `columns`.
pub(super) fn fit(shown: &str, columns: usize, is_right: bool) -> String {
    let mut cell = String::new();
    text::pad(&mut cell, &text::truncate(&sanitize::one_line(shown), columns), columns, is_right);
    cell
}

/// Returns a text on one line, sanitized and cut.
pub(super) fn cut(shown: &str, columns: usize) -> String {
    text::truncate(&sanitize::one_line(shown), columns).into_owned()
}

/// Rows of an area, filled from above.
pub(super) struct Rows<'b> {
    buffer: &'b mut Buffer,
    area: Rect,
    next: u16,
}

impl<'b> Rows<'b> {
    pub(super) fn new(buffer: &'b mut Buffer, area: Rect) -> Self {
        Self { buffer, area, next: 0 }
    }

    pub(super) fn columns(&self) -> usize {
        usize::from(self.area.width)
    }

    /// Returns the number of rows that are left.
    pub(super) fn left(&self) -> usize {
        usize::from(self.area.height.saturating_sub(self.next))
    }

    /// Fills a row; does nothing if none is left.
    pub(super) fn line(&mut self, spans: Vec<Span<'_>>) {
        if self.next < self.area.height {
            self.buffer.set_line(self.area.x, self.area.y + self.next, &Line::from(spans), self.area.width);
            self.next += 1;
        }
    }

    /// Fills a row that is selected.
    pub(super) fn selected_line(&mut self, spans: Vec<Span<'_>>) {
        let row = Rect { y: self.area.y + self.next, height: 1, ..self.area };
        self.line(spans);
        if row.y < self.area.bottom() {
            self.buffer.set_style(row, Style::new().add_modifier(Modifier::REVERSED));
        }
    }

    /// Leaves rows empty.
    pub(super) fn skip(&mut self, rows: usize) {
        self.next = self.next.saturating_add(u16::try_from(rows).unwrap_or(u16::MAX)).min(self.area.height);
    }

    /// Returns the y of the next row.
    pub(super) fn y(&self) -> u16 {
        self.area.y + self.next
    }
}
