//! The outcome of a model call, as the state machine receives it.

use chorus_base::error::Error;
use chorus_proto::{ToolCall, Usage};
use chorus_session::stored_message::StoredMessage;

/// A model's reply.
#[derive(Debug)]
pub struct ModelReply {
    /// The message to record; `None` if the reply is entirely empty.
    pub message: Option<StoredMessage>,
    pub text: String,
    /// The tool calls as they run.
    pub calls: Vec<ToolCall>,
    /// The same tool calls with secrets redacted, as they are recorded.
    pub redacted_calls: Vec<ToolCall>,
    pub usage: Usage,
    /// A note for the user on why the reply ends here.
    pub note: Option<String>,
}

/// A model call that failed or was interrupted.
#[derive(Debug)]
pub struct ModelFailure {
    pub failure: Error,
    /// The message to record, if part of a reply had come.
    pub partial: Option<StoredMessage>,
    pub usage: Usage,
    /// Whether the model refused the window as too long.
    pub too_long: bool,
}
