//! Draws the messages of the selected hit.

use chorus_proto::{Message, Role, tool_gist};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::text::{Line, Span};

use super::state::State;
use super::view::put;
use crate::ui::full_screen::screen_style;
use crate::ui::time::Clock;
use crate::ui::{Style, sanitize, text};

/// Characters of a message that are looked at: no screen has room for more.
const MAX_CHARS: usize = 20_000;

/// Draws the message that was found, and those after it.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, state: &State, clock: &Clock) {
    let (Some(hit), Some(preview)) = (state.selected_hit(), state.preview()) else { return };
    let mut row = 0;
    for (number, message) in (hit.message.unwrap_or(1)..).zip(&preview.messages) {
        if row > 0 {
            row += 1;
        }
        if row >= area.height {
            return;
        }
        put(buffer, area, row, heading(number, message, clock));
        row += 1;
        for line in body(message, usize::from(area.width).max(1), usize::from(area.height)) {
            put(buffer, area, row, line);
            row = row.saturating_add(1);
        }
    }
}

fn heading(number: u64, message: &Message, clock: &Clock) -> Line<'static> {
    let (style, who) = match message.role {
        Role::User => (Style::User, "user"),
        Role::Assistant => (Style::Assistant, "assistant"),
        Role::System => (Style::Strong, "system"),
        Role::ToolResult => (Style::Tool, "result"),
    };
    let author = message.author.as_ref().map(|author| format!(" ({})", sanitize::one_line(&author.name)));
    Line::from(vec![
        Span::styled(format!("{number} "), screen_style(Style::Faint)),
        Span::styled(format!("{who}{}", author.unwrap_or_default()), screen_style(style)),
        Span::styled(format!(" · {}", clock.local_date_time(message.timestamp)), screen_style(Style::Faint)),
    ])
}

/// Returns the text and the tool calls, in at most about `max_lines` lines.
fn body(message: &Message, width: usize, max_lines: usize) -> Vec<Line<'static>> {
    let end = message.content.char_indices().nth(MAX_CHARS).map_or(message.content.len(), |(at, _)| at);
    let content = sanitize::multi_line(message.content[..end].trim_end());
    let mut lines: Vec<Line<'static>> = match &*content {
        "" => Vec::new(),
        content => {
            text::wrap(content, width).into_iter().take(max_lines).map(|line| line.into_owned().into()).collect()
        }
    };
    for call in message.tool_calls.iter().take(max_lines) {
        let name = tool_gist::display_name(&call.name);
        let call = sanitize::one_line(&format!("→ {name}  {}", tool_gist::gist(call)));
        lines.push(Span::styled(text::truncate(&call, width).into_owned(), screen_style(Style::Tool)).into());
    }
    lines
}
