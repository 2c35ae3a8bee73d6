//! Draws the state.

mod ascii;
mod conversation;
mod header;
mod help;
mod list;
mod outbox;
mod paint;
mod panels;

use std::time::{Duration, Instant};

use chorus_proto::AgentState;
use chorus_proto::methods::send::TurnEvent;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::Modifier;
use ratatui_core::terminal::{Frame, Terminal};

use crate::connection::Incoming;
use crate::conversation::{Conversation, Source};
use crate::fleet::Target;
use crate::panels::Panel;
use crate::requests::{Answer, Request};
use crate::state::{Input, Link, State};
use paint::{Paint, Rows};
use serde_json::json;
use uuid::Uuid;

/// The least size at which something can be shown.
const MIN_COLUMNS: u16 = 40;
const MIN_ROWS: u16 = 10;

/// New states of an agent that are measured.
const UPDATES: u32 = 100;

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
    // Times of a picture that is not current stop with it.
    let now = state.now;
    if let Link::Lost(since) = state.link {
        state.now = since;
    }
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
    state.now = now;
    let below_title = Rect { y: area.y + 1, height: 1, ..area };
    if let Some(since) = state.silent_since() {
        header::draw_silent(buffer, below_title, state, since);
    }
    if let Link::Lost(since) = state.link {
        // What is shown was true then.
        buffer.set_style(Rect { height: area.height - 1, ..area }, Modifier::DIM);
        header::draw_lost(buffer, below_title, state, since);
    }
    header::draw_footer(buffer, footer, state, keys);
    if !state.is_utf8 {
        ascii::replace(buffer);
    }
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
    // The longest of several, each of which gives an agent another state.
    let mut update = Duration::ZERO;
    for round in 0..UPDATES {
        let mut one = one.clone();
        if let Some(agent) = one.agents.first_mut() {
            agent.state = if round % 2 == 0 { AgentState::Idle } else { AgentState::Active };
        }
        let start = Instant::now();
        state.handle(answer(Request::Agent(String::new()), one), now);
        update = update.max(start.elapsed());
    }
    [total / frames.max(1), longest, update]
}

/// Draws `frames` frames of an open conversation with `messages` messages, in each of which its reply grows; returns the mean and the
/// longest time, with that of taking the piece.
///
/// # Panics
/// A message of this function is not one.
#[doc(hidden)]
#[must_use]
pub fn measure_conversation(messages: usize, (columns, rows): (u16, u16), frames: u32) -> [Duration; 2] {
    let now = Timestamp::now();
    let mut state = State::new(now, TimeZone::UTC, true, String::new(), None);
    let target = Target::main("agent");
    let mut open = Conversation::new(Source::Live(target), 1);
    let text = "A line of a message that is long enough to be wrapped on any terminal. ".repeat(8);
    let message = |number: usize| {
        let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
        let message = json!({"id": number.to_string(), "role": role, "content": text, "timestamp": now});
        serde_json::from_value(message).expect("a message")
    };
    open.set_record((0..messages).map(message).collect(), messages as u64);
    open.on_piece(&TurnEvent::Started { turn_id: Uuid::nil() });
    state.panels.push(Panel::Conversation(Box::new(open)));
    let Ok(mut terminal) = Terminal::new(TestBackend::new(columns, rows));
    let (mut total, mut longest) = (Duration::ZERO, Duration::ZERO);
    // The first frame wraps everything.
    let Ok(_) = terminal.draw(|frame| draw(frame, &mut state));
    for _ in 0..frames {
        let piece = Box::new(TurnEvent::Text("and some more words. ".into()));
        let start = Instant::now();
        state.handle(Input::Incoming(Incoming::Turn(1, piece)), now);
        let Ok(_) = terminal.draw(|frame| draw(frame, &mut state));
        let took = start.elapsed();
        (total, longest) = (total + took, longest.max(took));
    }
    [total / frames.max(1), longest]
}
