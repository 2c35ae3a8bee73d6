//! A screen with an agent of each kind.

use chorus_proto::ErrorKind;
use chorus_proto::methods::Method;
use chorus_proto::methods::send::TurnEvent;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::Style;
use ratatui_core::terminal::Terminal;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::connection::Incoming;
use crate::fleet::Target;
use crate::requests::{Answer, Failure, Request};
use crate::state::{Effect, Input, State};
use crate::view;

pub(super) const NARROW: (u16, u16) = (80, 24);
pub(super) const WIDE: (u16, u16) = (200, 60);

pub(super) fn now() -> Timestamp {
    "2026-03-05T08:00:00Z".parse().expect("a time")
}

pub(super) fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a wire type")
}

/// Reads a result of the golden files.
pub(super) fn golden<M: Method>(text: &str) -> M::Result {
    let whole: Value = serde_json::from_str(text).expect("JSON");
    read(whole["result"].clone())
}

fn agent(number: u32, name: &str, more: Value) -> Value {
    let mut agent = json!({
        "id": format!("5b0c9a52-3c1e-4c0e-9d53-{number:012}"),
        "name": name, "status": "active", "state": "idle", "model": "anthropic/claude-sonnet-4-5",
        "permissions": "standard", "created_at": "2026-02-20T08:00:00Z", "channel_id": null, "guild_id": null,
        "path": format!("/home/mara/.chorus-agents/agents/{name}"), "context": null, "last_session": null
    });
    if let (Some(agent), Value::Object(more)) = (agent.as_object_mut(), more) {
        agent.extend(more);
    }
    agent
}

fn context(messages: u64, used: u64, deadline: &str) -> Value {
    json!({
        "messages": messages, "token_estimate": used, "started_at": "2026-03-05T07:00:00Z",
        "last_activity_at": "2026-03-05T07:58:00Z", "idle_deadline_at": deadline, "parent_id": null, "unsaved": 4,
        "meter": {"used": used, "window": 200_000, "calibrated": true}
    })
}

/// Returns the status of a daemon with an agent of each kind and `idle` others.
pub(super) fn status(idle: u32) -> Value {
    let turn = json!({"turn_id": "0197a8c2-1d00-7a31-9c55-3e1f6f0b2a07", "step": 3, "seconds": 72, "waiting": 1});
    let mut agents = vec![
        agent(
            1,
            "api",
            json!({
                "state": "active", "turn": turn, "context": context(23, 124_000, "2026-03-05T08:28:00Z"),
                "today": {"tokens": 45_210, "cost_usd": 0.42, "calls": 12, "unpriced_calls": 0},
                "conversations": [{
                    "id": "0197a8c2-2e00-7b10-8d44-5a6b7c8d9e0f", "name": "review", "created_at": "2026-03-05T07:00:00Z",
                    "selected": false, "context": context(4, 18_000, "2026-03-05T08:12:10Z"), "last_session": null
                }]
            }),
        ),
        agent(
            2,
            "docs-日本語",
            json!({
                "state": "active", "context": context(2, 900, "2026-03-05T08:00:40Z"),
                "attached": [{"client": "pts/3", "since": "2026-03-05T07:30:00Z"}]
            }),
        ),
        agent(
            3,
            "web",
            json!({
                "last_session": {
                    "id": "9f1c27d4-8f5e-4d0a-a3c6-2b9be1d7e604", "short_id": "9f1c27d4",
                    "session_id": "2026-03-02_rate-limiter", "saved_at": "2026-03-05T06:00:00Z",
                    "description": "Rate limiter \u{1b}[31mfor 你好 👩‍👧 the public API", "summary": null, "message_count": 14
                }
            }),
        ),
        agent(4, "claude-code", json!({"import_source": "claude-code", "model": null})),
    ];
    agents.extend((0..idle).map(|number| agent(100 + number, &format!("worker-{number:05}"), json!({}))));
    json!({
        "daemon": {
            "version": "0.1.0", "pid": 4242, "started_at": "2026-03-05T04:48:00Z", "uptime_s": 11_520,
            "home": "/home/mara/.chorus-agents", "socket": "/home/mara/.chorus-agents/run/chorusd.sock",
            "protocol": 1, "connections": 3, "rss_bytes": 12_582_912
        },
        "agents": agents, "tasks": {"running": 1, "finished": 4},
        "discord": {"connected": true, "guilds": 2, "state": "connected"}, "models": {"available": 7}
    })
}

/// A screen and its size.
pub(super) struct TestScreen {
    pub(super) state: State,
    size: (u16, u16),
}

impl TestScreen {
    /// Returns the screen with agents, an approval, a task and captured conversations.
    pub(super) fn new(size: (u16, u16)) -> Self {
        let mut shown = Self::empty(size);
        shown.incoming(Incoming::Connected);
        shown.answer(Request::Status, Answer::Status(read(status(0))));
        let mut sessions = golden::<chorus_proto::methods::context::History>(include_str!(
            "../../../../../proto/golden/v1/context.history.result.json"
        ))
        .sessions;
        sessions.truncate(2);
        shown.answer(Request::Captured("claude-code".into()), Answer::Sessions(sessions, 251));
        shown.answer(Request::Approvals, Answer::Approvals(vec![approval("k7mq2x", "tool:bash:rm -rf build")]));
        let tasks = golden::<chorus_proto::methods::tasks::List>(include_str!(
            "../../../../../proto/golden/v1/tasks.list.result.json"
        ));
        shown.answer(Request::Tasks, Answer::Tasks(tasks.tasks));
        let capture = golden::<chorus_proto::methods::capture::Status>(include_str!(
            "../../../../../proto/golden/v1/capture.status.result.json"
        ));
        shown.answer(Request::Capture, Answer::Capture(Box::new(capture)));
        shown.event(json!({
            "seq": 9, "time": "2026-03-05T08:00:00Z", "type": "tool.started", "agent": "api",
            "data": {"turn_id": "0197a8c2-1d00-7a31-9c55-3e1f6f0b2a07", "id": "c", "name": "str_replace"}
        }));
        shown
    }

    /// Returns the screen before anything is known.
    pub(super) fn empty(size: (u16, u16)) -> Self {
        Self { state: State::new(now(), TimeZone::UTC, false, "pts/9".into(), None), size }
    }

    pub(super) fn of(state: State, size: (u16, u16)) -> Self {
        Self { state, size }
    }

    pub(super) fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
    }

    pub(super) fn handle(&mut self, input: Input) -> Vec<Effect> {
        self.state.handle(input, now())
    }

    pub(super) fn incoming(&mut self, incoming: Incoming) -> Vec<Effect> {
        self.handle(Input::Incoming(incoming))
    }

    pub(super) fn answer(&mut self, request: Request, answer: Answer) -> Vec<Effect> {
        self.incoming(Incoming::Answer(request, Ok(answer)))
    }

    pub(super) fn event(&mut self, event: Value) -> Vec<Effect> {
        self.incoming(Incoming::Event(read(event)))
    }

    /// Takes a piece of the conversation that was opened last.
    pub(super) fn piece(&mut self, event: Value) -> Vec<Effect> {
        let number = self.state.open().map_or(0, |open| open.number);
        self.incoming(Incoming::Turn(number, Box::new(read::<TurnEvent>(event))))
    }

    /// Presses a key and returns the requests that it makes.
    pub(super) fn key(&mut self, code: KeyCode) -> Vec<Request> {
        let effects = self.handle(Input::Key(code.into()));
        effects
            .into_iter()
            .filter_map(|effect| match effect {
                Effect::Request(request) => Some(request),
                _ => None,
            })
            .collect()
    }

    pub(super) fn control(&mut self, c: char) -> Vec<Effect> {
        self.handle(Input::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)))
    }

    pub(super) fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            self.key(KeyCode::Char(c));
        }
    }

    /// Draws, and returns the cells.
    pub(super) fn buffer(&mut self) -> Buffer {
        let Ok(mut terminal) = Terminal::new(TestBackend::new(self.size.0, self.size.1));
        let Ok(_) = terminal.draw(|frame| view::draw(frame, &mut self.state));
        terminal.backend().buffer().clone()
    }

    /// Draws, and returns the styles of the cells in which `text` is shown, each once.
    pub(super) fn styles_of(&mut self, text: &str) -> Vec<Style> {
        let buffer = self.buffer();
        let columns = usize::from(self.size.0);
        let rows = buffer.content().chunks(columns);
        let (row, at) = rows
            .into_iter()
            .find_map(|row| {
                let shown: String = row.iter().map(|cell| cell.symbol().chars().next().unwrap_or(' ')).collect();
                Some((row, shown[..shown.find(text)?].chars().count()))
            })
            .expect("the text is shown");
        let mut styles: Vec<Style> = Vec::new();
        for cell in &row[at..at + text.chars().count()] {
            let style = Style { fg: Some(cell.fg), bg: None, add_modifier: cell.modifier, ..Style::new() };
            if !styles.contains(&style) {
                styles.push(style);
            }
        }
        styles
    }

    /// Draws, and returns the rows without spaces at their ends.
    pub(super) fn text(&mut self) -> String {
        let buffer = self.buffer();
        let rows = buffer.content().chunks(usize::from(self.size.0)).map(|row| {
            let (mut text, mut skip) = (String::new(), 0);
            for cell in row {
                if skip == 0 {
                    text.push_str(cell.symbol());
                }
                skip = chorus_terminal_text::text::width(cell.symbol()).max(skip).saturating_sub(1);
            }
            text.trim_end().to_owned()
        });
        rows.collect::<Vec<_>>().join("\n")
    }
}

/// Returns the request that sends a message, the `number`th of the screen.
pub(super) fn sent(target: &Target, text: &str, number: u32) -> Request {
    Request::Send { target: target.clone(), text: text.into(), key: format!("-{number}") }
}

/// Returns the failure of a request whose connection was lost.
pub(super) fn no_connection() -> Failure {
    Failure { message: "lost the connection to the daemon".into(), hint: None, kind: None }
}

/// Returns the failure of a request that the daemon refused.
pub(super) fn refused(kind: ErrorKind, message: &str) -> Failure {
    Failure { message: message.into(), hint: None, kind: Some(kind) }
}

/// Returns a pending approval of the agent `api`.
pub(super) fn approval(id: &str, action: &str) -> chorus_proto::methods::approvals::Approval {
    read(json!({
        "id": id, "agent": "api", "turn_id": "0197a8c2-1d00-7a31-9c55-3e1f6f0b2a07", "call_id": "toolu_01B",
        "action": action, "hash": "6f1ed002ab5595859014ebf0951522d9a1f3f0a1a1d5a0b5c1e5d2f8b7c9e0d4",
        "rule": {"from": "default"}, "parts": [], "requester": "owner", "asked_at": "2026-03-05T07:59:00Z",
        "expires_at": "2026-03-05T08:01:00Z", "status": "open", "not_always": null, "patterns": ["rm *"],
        "reason": "the profile standard asks before this kind of command",
        "directory": "/home/mara/.chorus-agents/agents/api/workspace",
        "reach": {"sandboxed": true, "network": false, "writes": []}, "decided_at": null, "decided_by": null
    }))
}
