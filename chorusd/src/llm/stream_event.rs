//! What an answer brings while it comes.

use std::time::Duration;

/// Hears what an answer brings, when it comes; what it does then holds up the answer.
pub type StreamListener<'a> = &'a (dyn Fn(StreamEvent) + Send + Sync);

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    Text(String),
    Thinking(String),
    /// A call of a tool begins; its parameters come with the whole reply.
    ToolCall {
        id: String,
        name: String,
    },
    /// What the caller is to know meanwhile, in one line.
    Note(String),
    /// The try before this failed; the next comes after `wait`.
    Retry {
        /// The number of the next try: 2 to 4.
        attempt: u32,
        wait: Duration,
        why: String,
    },
}
