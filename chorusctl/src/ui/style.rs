//! Colours. Every style is readable on dark and light backgrounds, and no information is in the colour alone.

use std::fmt;

/// Style of a piece of text on a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Style {
    #[default]
    Plain,
    /// Names and headings.
    Strong,
    /// Less important: times, numbers, frames.
    Faint,
    /// Can be copied into the next command: ids.
    Id,
    /// The part of an id that is enough to type.
    IdPrefix,
    Good,
    Bad,
    /// The user's part of a conversation.
    User,
    /// The model's part of it.
    Assistant,
    /// Tool calls and their results.
    Tool,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Id => "36",
            Self::IdPrefix => "1;4;36",
            Self::Good => "32",
            Self::Bad => "31",
            Self::User => "1;32",
            Self::Assistant => "1;35",
            Self::Tool => "36",
        }
    }
}

/// Applies styles if colours are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Styler {
    pub enabled: bool,
}

impl Styler {
    /// Formats `text` in `style`, or plain if colours are disabled.
    #[must_use]
    pub fn style<'a>(self, style: Style, text: &'a str) -> StyledText<'a> {
        StyledText { style: if self.enabled { style } else { Style::Plain }, text }
    }
}

/// Text with a style; see [`Styler::style`].
#[derive(Debug, Clone, Copy)]
pub struct StyledText<'a> {
    style: Style,
    text: &'a str,
}

impl fmt::Display for StyledText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            Style::Plain => f.write_str(self.text),
            _ if self.text.is_empty() => Ok(()),
            style => write!(f, "\x1b[{}m{}\x1b[0m", style.code(), self.text),
        }
    }
}
