//! State that the threads of the server share.

#![expect(clippy::disallowed_types, reason = "a Condvar needs the mutex of the standard library")]

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::response::Response;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    Anthropic,
    Openai,
}

/// A recorded request.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub text: String,
    /// The body as JSON; null if it is not JSON.
    pub body: Value,
    /// Number of the connection.
    pub connection: u64,
}

impl RecordedRequest {
    /// Returns true if it asks for a count of tokens.
    pub(super) fn is_count(&self) -> bool {
        self.path == super::COUNT_PATH
    }

    /// Returns the value of a header; the name must be in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }
}

/// Answers requests by a function of their body.
#[derive(Clone)]
pub struct Responder(pub Arc<dyn Fn(&Value) -> Response + Send + Sync>);

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Responder")
    }
}

/// A function that makes a vector of a text.
type MakeVector = dyn Fn(&str) -> Vec<f32> + Send + Sync;

/// Makes the vectors of texts.
#[derive(Clone)]
pub struct TextEmbedder(pub Arc<MakeVector>);

impl fmt::Debug for TextEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TextEmbedder")
    }
}

/// Responses to send, and what has arrived.
#[derive(Debug)]
pub struct ServerState {
    anthropic: VecDeque<Response>,
    openai: VecDeque<Response>,
    anthropic_fallback: Option<Response>,
    openai_fallback: Option<Response>,
    /// Answers requests for structured output.
    pub form_responder: Option<Responder>,
    /// Makes the vectors of texts.
    pub embedder: Option<TextEmbedder>,
    /// Answers turns, before queued responses do.
    pub turn_responder: Option<Responder>,
    /// Response to requests that offer no tools: those for summaries.
    pub summary: Option<Response>,
    /// True if requests for summaries take queued responses.
    pub summaries_queued: bool,
    /// True if conversations that the real servers refuse are refused.
    pub strict: bool,
    pub anthropic_list: (u16, String),
    pub openai_list: (u16, String),
    /// Responses of other paths. The key may end in a space and the model of a posted request.
    pub paths: HashMap<String, String>,
    pub requests: Vec<RecordedRequest>,
    /// Gates that are open.
    pub open_gates: HashSet<String>,
    /// Gates that a stream has reached.
    pub reached_gates: HashSet<String>,
    pub hang_ups: usize,
    pub connections: u64,
    pub closing: bool,
}

impl Default for ServerState {
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
            anthropic_fallback: None,
            openai_fallback: None,
            form_responder: None,
            embedder: None,
            turn_responder: None,
            summary: None,
            summaries_queued: false,
            strict: false,
            anthropic_list: (200, anthropic.to_string()),
            openai_list: (200, openai.to_string()),
            paths: HashMap::new(),
            requests: Vec::new(),
            open_gates: HashSet::new(),
            reached_gates: HashSet::new(),
            hang_ups: 0,
            connections: 0,
            closing: false,
        }
    }
}

impl ServerState {
    pub fn queue(&mut self, wire: WireFormat) -> &mut VecDeque<Response> {
        match wire {
            WireFormat::Anthropic => &mut self.anthropic,
            WireFormat::Openai => &mut self.openai,
        }
    }

    pub fn fallback(&mut self, wire: WireFormat) -> &mut Option<Response> {
        match wire {
            WireFormat::Anthropic => &mut self.anthropic_fallback,
            WireFormat::Openai => &mut self.openai_fallback,
        }
    }

    /// Returns the next response to `body`. Requests for structured output take no queued responses.
    pub fn next_response(&mut self, wire: WireFormat, body: &Value) -> Response {
        let next = if body["tool_choice"]["type"] == "tool" || !body["response_format"].is_null() {
            self.form_responder.as_ref().map(|responder| (responder.0)(body))
        } else if let Some(summary) = self.summary.clone().filter(|_| body["tools"].is_null()) {
            Some(summary)
        } else if is_summary(body) && !self.summaries_queued {
            // It may come at any time, and would take what was meant for a turn.
            self.fallback(wire).clone()
        } else if let Some(responder) = &self.turn_responder {
            Some((responder.0)(body))
        } else {
            self.queue(wire).pop_front().or_else(|| self.fallback(wire).clone())
        };
        next.unwrap_or_else(|| Response::error(418, r#"{"error":{"type":"test","message":"no answer was laid out"}}"#))
    }
}

/// The state, and a condition variable that is notified on every change.
#[derive(Debug, Default)]
pub struct SharedState {
    state: Mutex<ServerState>,
    changed: Condvar,
}

impl SharedState {
    pub fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn update<T>(&self, change: impl FnOnce(&mut ServerState) -> T) -> T {
        let changed = change(&mut self.state());
        self.changed.notify_all();
        changed
    }

    /// Waits for a change, at most `moment`.
    pub fn wait_for_change(&self, state: MutexGuard<'_, ServerState>, moment: std::time::Duration) {
        drop(self.changed.wait_timeout(state, moment).unwrap_or_else(PoisonError::into_inner));
    }
}

/// Returns true for a request for the summary of a session.
fn is_summary(body: &Value) -> bool {
    let text = if body["system"].is_null() { &body["messages"][0] } else { &body["system"] };
    body["tools"].is_null() && text.to_string().contains("summaries of conversations")
}
