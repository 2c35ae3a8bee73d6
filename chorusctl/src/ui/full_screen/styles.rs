//! Styles and marked texts as ratatui has them.

use ratatui_core::style::{Color, Modifier, Style as ScreenStyle};
use ratatui_core::text::{Line, Span};

use crate::ui::Style;

/// Returns the style that looks as [`Style`] does in the output of other commands.
#[must_use]
pub fn screen_style(style: Style) -> ScreenStyle {
    let plain = ScreenStyle::new();
    match style {
        Style::Plain => plain,
        Style::Strong => plain.add_modifier(Modifier::BOLD),
        Style::Faint => plain.add_modifier(Modifier::DIM),
        Style::Id | Style::Tool => plain.fg(Color::Cyan),
        Style::IdPrefix => plain.fg(Color::Cyan).add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
        Style::Good => plain.fg(Color::Green),
        Style::Bad => plain.fg(Color::Red),
        Style::User => plain.fg(Color::Green).add_modifier(Modifier::BOLD),
        Style::Assistant => plain.fg(Color::Magenta).add_modifier(Modifier::BOLD),
    }
}

/// Returns a line of pieces of which some are marked.
#[must_use]
pub fn marked_line(pieces: Vec<(String, bool)>) -> Line<'static> {
    let style = |is_marked| screen_style(if is_marked { Style::Strong } else { Style::Plain });
    pieces.into_iter().map(|(text, is_marked)| Span::styled(text, style(is_marked))).collect::<Vec<_>>().into()
}
