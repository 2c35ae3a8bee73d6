//! An answer as data: what is sent, and where it waits, breaks or crawls.

use std::time::Duration;

use serde_json::Value;

/// One answer. The methods that return it add to its end.
#[derive(Debug, Clone)]
pub struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// A body that is no stream.
    pub(super) body: Option<String>,
    pub(super) steps: Vec<Step>,
    pub(super) usage: TokenCounts,
    /// Whether chat completions tell what the answer cost.
    pub(super) reports_usage: bool,
    /// The wire's own word for why it stops; `None`: what fits.
    pub(super) stop_reason: Option<String>,
    pub(super) end: StreamEnd,
}

/// What an answer says it cost.
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
    /// In order as far as HTTP goes, but without the event that ends it.
    NoFinalEvent,
    /// The connection breaks.
    Disconnect,
}

/// One thing that a stream does.
#[derive(Debug, Clone)]
pub enum Step {
    Text(String),
    Thinking(String),
    /// Ends the thinking before it.
    Signature(String),
    Call {
        id: String,
        name: String,
        params: String,
    },
    /// A sign of life that says nothing.
    Ping,
    /// An error event in the stream: its type and message.
    Error(String, String),
    /// Bytes as they are.
    Raw(Vec<u8>),
    /// Waits until the test opens it.
    Gate(String),
    /// Waits until the client goes away.
    Stall,
    /// Pings, each after so long, until the client goes away.
    Pings(Duration),
    /// Waits so long.
    Pause(Duration),
    /// Waits until so long after the last of these: a rate that holds, however late each wait ends.
    Pace(Duration),
    /// From here on one byte comes after so long, each.
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

    /// A stream without anything in it.
    #[must_use]
    pub fn empty() -> Self {
        Self::new(200)
    }

    /// A text in these pieces.
    #[must_use]
    pub fn text<T: Into<String>>(pieces: impl IntoIterator<Item = T>) -> Self {
        Self { steps: pieces.into_iter().map(|piece| Step::Text(piece.into())).collect(), ..Self::empty() }
    }

    /// A call, and nothing else.
    #[must_use]
    pub fn tool_call(id: &str, name: &str, params: &Value) -> Self {
        Self::empty().then_call(id, name, params)
    }

    /// A form that is filled in with `fields`, in the way of the wire that `body` asks by.
    #[must_use]
    pub fn structured(body: &Value, fields: &Value) -> Self {
        match body["tool_choice"]["name"].as_str() {
            Some(name) => Self::tool_call("form", name, fields),
            None => Self::text([fields.to_string()]),
        }
    }

    /// A refusal.
    #[must_use]
    pub fn error(status: u16, body: &str) -> Self {
        Self { body: Some(body.to_owned()), ..Self::new(status) }
    }

    /// One JSON body, though a stream was asked for.
    #[must_use]
    pub fn json_body(body: &Value) -> Self {
        Self { body: Some(body.to_string()), ..Self::new(200) }
    }

    /// The bytes of a stream, as they are: nothing is added.
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

    /// Adds thinking, with its signature where the wire has one.
    #[must_use]
    pub fn thinking(self, text: &str, signature: &str) -> Self {
        self.step(Step::Thinking(text.to_owned())).step(Step::Signature(signature.to_owned()))
    }

    /// Adds a call.
    #[must_use]
    pub fn then_call(self, id: &str, name: &str, params: &Value) -> Self {
        self.then_call_text(id, name, &params.to_string())
    }

    /// Adds a call whose parameters are this text, JSON or not.
    #[must_use]
    pub fn then_call_text(self, id: &str, name: &str, params: &str) -> Self {
        self.step(Step::Call { id: id.into(), name: name.into(), params: params.into() })
    }

    /// Waits until the test opens it.
    #[must_use]
    pub fn gate(self, name: &str) -> Self {
        self.step(Step::Gate(name.to_owned()))
    }

    /// Says nothing more, and stays.
    #[must_use]
    pub fn stall(self) -> Self {
        self.step(Step::Stall)
    }

    /// Breaks the connection where the steps end.
    #[must_use]
    pub fn disconnect(self) -> Self {
        Self { end: StreamEnd::Disconnect, ..self }
    }

    /// Ends in order, but without the event that says so.
    #[must_use]
    pub fn without_final_event(self) -> Self {
        Self { end: StreamEnd::NoFinalEvent, ..self }
    }

    /// Tokens of the whole input, and of the output.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        (self.usage.input, self.usage.output) = (input, output);
        self
    }

    /// Of the input, tokens out of the cache and into it.
    #[must_use]
    pub fn cache_tokens(mut self, read: u64, write: u64) -> Self {
        (self.usage.cache_read, self.usage.cache_write) = (read, write);
        self
    }

    /// Tells nothing of what it cost, as chat completions do on servers that know no `include_usage`.
    #[must_use]
    pub fn without_usage(self) -> Self {
        Self { reports_usage: false, ..self }
    }

    /// Why it stops, in the wire's own word: `max_tokens`, `length`, `refusal`, …
    #[must_use]
    pub fn stop_reason(self, reason: &str) -> Self {
        Self { stop_reason: Some(reason.to_owned()), ..self }
    }

    pub(super) fn has_calls(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Call { .. }))
    }
}
