//! Events of a reply while it is streamed.

use std::time::Duration;

/// Receives the events of a reply as they arrive; blocking in it delays the reply.
pub(crate) type StreamListener<'a> = &'a (dyn Fn(StreamEvent) + Send + Sync);

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    Text(String),
    Thinking(String),
    /// A tool call begins; its parameters come with the complete reply.
    ToolCall {
        id: String,
        name: String,
    },
    /// A one-line note for the user.
    Note(String),
    /// The attempt failed; the next one follows after `wait`.
    Retry {
        /// Number of the next attempt: 2 to 4.
        attempt: u32,
        wait: Duration,
        why: String,
    },
}
