//! What comes of asking a model.

use chorus_proto::{ToolCall, Usage};

use crate::error::Error;
use crate::message::StoredMessage;

/// What a model said.
#[derive(Debug)]
pub struct ModelReply {
    /// As it goes into the record; `None` where it said nothing at all.
    pub message: Option<StoredMessage>,
    pub text: String,
    /// As they run.
    pub calls: Vec<ToolCall>,
    /// The same as the record has them: without secrets.
    pub redacted_calls: Vec<ToolCall>,
    pub usage: Usage,
    /// Why it said no more, where that is to be told.
    pub note: Option<String>,
}

/// Why a model said nothing, or not all of it.
#[derive(Debug)]
pub struct ModelFailure {
    pub failure: Error,
    /// What had come, as it goes into the record.
    pub partial: Option<StoredMessage>,
    pub usage: Usage,
    /// The window was longer than the model takes.
    pub too_long: bool,
}
