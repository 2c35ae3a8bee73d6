//! Colour, sparingly: every style must read on dark and on light ground, and nothing is told by colour alone.

use std::fmt;

/// How a piece of text looks on a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Style {
    #[default]
    Plain,
    /// Names and headings.
    Strong,
    /// What may be overlooked: times, numbers, frames.
    Faint,
    /// What can be copied into the next command: ids.
    Id,
    Good,
    Bad,
    /// The person's part of a conversation.
    User,
    /// The model's part of it.
    Assistant,
    /// Calls of tools and what they gave.
    Tool,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Id => "36",
            Self::Good => "32",
            Self::Bad => "31",
            Self::User => "1;32",
            Self::Assistant => "1;35",
            Self::Tool => "36",
        }
    }
}

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Styler {
    pub enabled: bool,
}

impl Styler {
    /// `text` in `style`, or plain where colours are off.
    #[must_use]
    pub fn style<'a>(self, style: Style, text: &'a str) -> StyledText<'a> {
        StyledText { style: if self.enabled { style } else { Style::Plain }, text }
    }
}

/// Text with a style; see [`Paint::paint`].
#[derive(Debug, Clone, Copy)]
pub struct StyledText<'a> {
    style: Style,
    text: &'a str,
}

impl fmt::Display for StyledText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            Style::Plain => f.write_str(self.text),
            style => write!(f, "\x1b[{}m{}\x1b[0m", style.code(), self.text),
        }
    }
}
