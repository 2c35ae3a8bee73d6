//! Draws the state.

mod conversation;
mod header;
mod help;
mod list;
mod paint;
mod panels;

use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::Modifier;
use ratatui_core::terminal::{Frame, Terminal};

use crate::connection::Incoming;
use crate::panels::Panel;
use crate::requests::{Answer, Request};
use crate::state::{Input, Link, State};
use paint::{Paint, Rows};

/// The least size at which something can be shown.
const MIN_COLUMNS: u16 = 40;
const MIN_ROWS: u16 = 10;

/// Draws a frame.
pub(crate) fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let area = frame.area();
    let cursor = draw_into(frame.buffer_mut(), area, state);
    if let Some(at) = cursor {
        frame.set_cursor_position(at);
    }
}

/// Draws into a buffer. Returns where the cursor belongs; `None` if it is hidden.
fn draw_into(buffer: &mut Buffer, area: Rect, state: &mut State) -> Option<Position> {
    if area.width < MIN_COLUMNS || area.height < MIN_ROWS {
        let paint = Paint::new(state.has_color);
        let mut rows = Rows::new(buffer, area);
        let (columns, lines) = (area.width, area.height);
        rows.line(vec![paint.strong("terminal too small")]);
        rows.line(vec![paint.plain(format!("{columns}x{lines}; needs {MIN_COLUMNS}x{MIN_ROWS}"))]);
        return None;
    }
    let header = Rect { height: 2, ..area };
    let body = Rect { y: area.y + 2, height: area.height - 3, ..area };
    let footer = Rect { y: area.bottom() - 1, height: 1, ..area };
    state.page = usize::from(body.height.saturating_sub(2)).max(1);
    state.remember_shown_approval();
    let mut panels = std::mem::take(&mut state.panels);
    // A question is shown below the list that it is about.
    let (question, shown) = match panels.split_last_mut() {
        Some((Panel::Confirm(confirm), below)) => (Some(&*confirm), below.last_mut()),
        Some((last, _)) => (None, Some(last)),
        None => (None, None),
    };
    let mut keys = list::KEYS;
    let mut cursor = None;
    match shown {
        None => {
            header::draw(buffer, header, state);
            list::draw(buffer, body, state);
        }
        Some(Panel::Conversation(open)) => {
            keys = conversation::keys(open);
            conversation::draw_header(buffer, header, state, open);
            cursor = conversation::draw(buffer, body, state, open);
        }
        Some(panel) => {
            header::draw(buffer, header, state);
            (keys, cursor) = panels::draw(buffer, body, state, panel);
        }
    }
    if let Some(confirm) = question {
        keys = panels::CONFIRM_KEYS;
        cursor = None;
        panels::draw_question(buffer, body, state, confirm);
    }
    state.panels = panels;
    if let Link::Lost(since) = state.link {
        // What is shown was true then.
        buffer.set_style(Rect { height: area.height - 1, ..area }, Modifier::DIM);
        header::draw_lost(buffer, Rect { y: area.y + 1, height: 1, ..area }, state, since);
    }
    header::draw_footer(buffer, footer, state, keys);
    cursor
}

/// Draws `frames` frames with `agents` agents, with another row selected in each; returns the mean and the longest time, and the time
/// to take an agent's new state.
///
/// # Panics
/// `status` is not a status.
#[doc(hidden)]
#[must_use]
pub fn measure_frames(status: &str, (columns, rows): (u16, u16), frames: u32) -> [Duration; 3] {
    let now = Timestamp::now();
    let mut state = State::new(now, TimeZone::UTC, true, String::new(), None);
    let parse = || serde_json::from_str(status).expect("a status");
    let answer = |request, status| Input::Incoming(Incoming::Answer(request, Ok(Answer::Status(status))));
    state.handle(answer(Request::Status, parse()), now);
    let mut one: Box<chorus_proto::methods::daemon::StatusResult> = parse();
    one.agents.truncate(1);
    let Ok(mut terminal) = Terminal::new(TestBackend::new(columns, rows));
    let (mut total, mut longest) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..frames {
        state.handle(Input::Key(crossterm::event::KeyCode::PageDown.into()), now);
        let start = Instant::now();
        let Ok(_) = terminal.draw(|frame| draw(frame, &mut state));
        let took = start.elapsed();
        (total, longest) = (total + took, longest.max(took));
    }
    let start = Instant::now();
    state.handle(answer(Request::Agent(String::new()), one), now);
    [total / frames.max(1), longest, start.elapsed()]
}
