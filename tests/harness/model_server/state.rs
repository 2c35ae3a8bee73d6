//! What the threads of the server share.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::answer::Answer;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    Anthropic,
    Openai,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub method: String,
    /// With its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub text: String,
    /// The body as JSON; null where it is none.
    pub body: Value,
    /// Which connection it came by.
    pub connection: u64,
}

impl Recorded {
    /// The value of a header; its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }
}

/// What answers requests whose answer is to have a form.
#[derive(Clone)]
pub struct Former(pub Arc<dyn Fn(&Value) -> Answer + Send + Sync>);

impl fmt::Debug for Former {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Former")
    }
}

/// What there is to answer, and what has come.
#[derive(Debug)]
pub struct State {
    anthropic: VecDeque<Answer>,
    openai: VecDeque<Answer>,
    anthropic_always: Option<Answer>,
    openai_always: Option<Answer>,
    pub former: Option<Former>,
    /// What answers requests that offer no tools: those for summaries.
    pub summary: Option<Answer>,
    /// Whether what the real servers refuse is refused.
    pub strict: bool,
    pub anthropic_list: (u16, String),
    pub openai_list: (u16, String),
    /// What other paths answer, with the model that is posted behind a space.
    pub paths: HashMap<String, String>,
    pub requests: Vec<Recorded>,
    /// Gates that are open.
    pub open: HashSet<String>,
    /// Gates that a stream has come to.
    pub reached: HashSet<String>,
    pub hung_up: usize,
    pub connections: u64,
    pub closing: bool,
}

impl Default for State {
    fn default() -> Self {
        let anthropic = json!({
            "data": [
                {"type": "model", "id": "claude-other", "display_name": "Other", "created_at": "2025-01-01T00:00:00Z"},
                {"type": "model", "id": "claude-test", "display_name": "Test", "created_at": "2025-01-01T00:00:00Z"},
            ],
            "has_more": false, "first_id": "claude-other", "last_id": "claude-test",
        });
        let openai = json!({
            "object": "list",
            "data": [
                {"id": "large", "object": "model", "created": 1, "owned_by": "test", "context_length": 131_072,
                 "pricing": {"prompt": "0.000001", "completion": "0.000002"}},
                {"id": "small", "object": "model", "created": 1, "owned_by": "test", "max_model_len": 8192},
            ],
        });
        Self {
            anthropic: VecDeque::new(),
            openai: VecDeque::new(),
            anthropic_always: None,
            openai_always: None,
            former: None,
            summary: None,
            strict: false,
            anthropic_list: (200, anthropic.to_string()),
            openai_list: (200, openai.to_string()),
            paths: HashMap::new(),
            requests: Vec::new(),
            open: HashSet::new(),
            reached: HashSet::new(),
            hung_up: 0,
            connections: 0,
            closing: false,
        }
    }
}

impl State {
    pub fn script(&mut self, wire: Wire) -> &mut VecDeque<Answer> {
        match wire {
            Wire::Anthropic => &mut self.anthropic,
            Wire::Openai => &mut self.openai,
        }
    }

    pub fn always(&mut self, wire: Wire) -> &mut Option<Answer> {
        match wire {
            Wire::Anthropic => &mut self.anthropic_always,
            Wire::Openai => &mut self.openai_always,
        }
    }

    /// The answer that is due to `body`. One that is to have a form takes none of the others.
    pub fn next(&mut self, wire: Wire, body: &Value) -> Answer {
        let next = if body["tool_choice"]["type"] == "tool" || !body["response_format"].is_null() {
            self.former.as_ref().map(|former| (former.0)(body))
        } else if let Some(summary) = self.summary.clone().filter(|_| body["tools"].is_null()) {
            Some(summary)
        } else {
            self.script(wire).pop_front().or_else(|| self.always(wire).clone())
        };
        next.unwrap_or_else(|| Answer::error(418, r#"{"error":{"type":"test","message":"no answer was laid out"}}"#))
    }
}

/// The state, and what wakes whoever waits for a change of it.
#[derive(Debug, Default)]
pub struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.changed.notify_all();
        changed
    }

    /// Waits a moment for a change.
    pub fn wait(&self, state: MutexGuard<'_, State>, moment: std::time::Duration) {
        drop(self.changed.wait_timeout(state, moment).unwrap_or_else(PoisonError::into_inner));
    }
}
