//! Scripted responses as data: what is sent, and where the stream waits, breaks or slows down.

use std::time::Duration;

use serde_json::Value;

/// One scripted response. Methods that return `Self` append to it.
#[derive(Debug, Clone)]
pub struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// A complete body instead of a stream.
    pub(super) body: Option<String>,
    pub(super) steps: Vec<Step>,
    pub(super) usage: TokenCounts,
    /// True if the response reports token counts; only for chat completions.
    pub(super) reports_usage: bool,
    /// The stop reason in the wire format's own words; `None` for the default.
    pub(super) stop_reason: Option<String>,
    pub(super) end: StreamEnd,
}

/// Token counts that a response reports.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenCounts {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEnd {
    Complete,
    /// The HTTP body is complete, but the final event is missing.
    NoFinalEvent,
    /// The connection is closed.
    Disconnect,
}

/// One step of a stream.
#[derive(Debug, Clone)]
pub enum Step {
    Text(String),
    Thinking(String),
    /// Signs and ends the thinking before it.
    Signature(String),
    Call {
        id: String,
        name: String,
        params: String,
    },
    /// A keep-alive without content.
    Ping,
    /// An error event: type and message.
    Error(String, String),
    /// Raw bytes.
    Raw(Vec<u8>),
    /// Waits until the test opens the gate of this name.
    Gate(String),
    /// Waits until the client disconnects.
    Stall,
    /// Sends pings at this interval until the client disconnects.
    Pings(Duration),
    /// Waits this long.
    Pause(Duration),
    /// Waits until this long after the previous `Pace` was due, so that the rate is constant even if a wait ends late.
    Pace(Duration),
    /// Sends all following bytes one by one at this interval.
    Drip(Duration),
}

impl Response {
    fn new(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: None,
            steps: Vec::new(),
            usage: TokenCounts { input: 10, output: 5, cache_read: 0, cache_write: 0 },
            reports_usage: true,
            stop_reason: None,
            end: StreamEnd::Complete,
        }
    }

    /// Creates an empty stream.
    #[must_use]
    pub fn empty() -> Self {
        Self::new(200)
    }

    /// Creates a stream of text in these pieces.
    #[must_use]
    pub fn text<T: Into<String>>(pieces: impl IntoIterator<Item = T>) -> Self {
        Self { steps: pieces.into_iter().map(|piece| Step::Text(piece.into())).collect(), ..Self::empty() }
    }

    /// Creates a stream with only a tool call.
    #[must_use]
    pub fn tool_call(id: &str, name: &str, params: &Value) -> Self {
        Self::empty().then_call(id, name, params)
    }

    /// Creates a structured response with `fields`, in the way in which the request `body` asks for it: a tool call or
    /// JSON text.
    #[must_use]
    pub fn structured(body: &Value, fields: &Value) -> Self {
        match body["tool_choice"]["name"].as_str() {
            Some(name) => Self::tool_call("form", name, fields),
            None => Self::text([fields.to_string()]),
        }
    }

    /// Creates an error response.
    #[must_use]
    pub fn error(status: u16, body: &str) -> Self {
        Self { body: Some(body.to_owned()), ..Self::new(status) }
    }

    /// Creates a single JSON body although a stream was requested.
    #[must_use]
    pub fn json_body(body: &Value) -> Self {
        Self { body: Some(body.to_string()), ..Self::new(200) }
    }

    /// Creates a stream of exactly these bytes.
    #[must_use]
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { steps: vec![Step::Raw(bytes.into())], end: StreamEnd::NoFinalEvent, ..Self::empty() }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds any step.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds a piece of text.
    #[must_use]
    pub fn then_text(self, text: &str) -> Self {
        self.step(Step::Text(text.to_owned()))
    }

    /// Adds thinking, with a signature if the wire format has one.
    #[must_use]
    pub fn thinking(self, text: &str, signature: &str) -> Self {
        self.step(Step::Thinking(text.to_owned())).step(Step::Signature(signature.to_owned()))
    }

    /// Adds a tool call.
    #[must_use]
    pub fn then_call(self, id: &str, name: &str, params: &Value) -> Self {
        self.then_call_text(id, name, &params.to_string())
    }

    /// Adds a tool call whose parameters are this text, valid JSON or not.
    #[must_use]
    pub fn then_call_text(self, id: &str, name: &str, params: &str) -> Self {
        self.step(Step::Call { id: id.into(), name: name.into(), params: params.into() })
    }

    /// Waits until the test opens the gate of this name.
    #[must_use]
    pub fn gate(self, name: &str) -> Self {
        self.step(Step::Gate(name.to_owned()))
    }

    /// Sends nothing more, but keeps the connection open.
    #[must_use]
    pub fn stall(self) -> Self {
        self.step(Step::Stall)
    }

    /// Closes the connection after the steps.
    #[must_use]
    pub fn disconnect(self) -> Self {
        Self { end: StreamEnd::Disconnect, ..self }
    }

    /// Leaves out the final event.
    #[must_use]
    pub fn without_final_event(self) -> Self {
        Self { end: StreamEnd::NoFinalEvent, ..self }
    }

    /// Sets the tokens of the whole input, and of the output.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        (self.usage.input, self.usage.output) = (input, output);
        self
    }

    /// Sets how many input tokens were read from and written to the cache.
    #[must_use]
    pub fn cache_tokens(mut self, read: u64, write: u64) -> Self {
        (self.usage.cache_read, self.usage.cache_write) = (read, write);
        self
    }

    /// Reports no usage, like chat completion servers that do not support `include_usage`.
    #[must_use]
    pub fn without_usage(self) -> Self {
        Self { reports_usage: false, ..self }
    }

    /// Sets the stop reason in the wire format's own words: `max_tokens`, `length`, `refusal`, …
    #[must_use]
    pub fn stop_reason(self, reason: &str) -> Self {
        Self { stop_reason: Some(reason.to_owned()), ..self }
    }

    pub(super) fn has_calls(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Call { .. }))
    }
}
