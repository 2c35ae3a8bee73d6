//! The record of a call.

use chorus_llm::{CallError, ModelRef, Reply, StopReason};
use chorus_proto::Usage;
use chorus_session::conversation::ConversationKey;
use jiff::Timestamp;
use uuid::Uuid;

use super::content::{CallContent, ToolContent};
use crate::usage::CallKind;

/// A call that has ended.
#[derive(Debug)]
pub enum TraceRecord {
    ModelCall(Box<ModelCallRecord>),
    ToolCall(Box<ToolCallRecord>),
}

/// A model call.
#[derive(Debug)]
pub struct ModelCallRecord {
    /// `None` if it was not part of a turn.
    pub turn: Option<Uuid>,
    pub conversation: ConversationKey,
    pub agent_name: String,
    pub model: ModelRef,
    pub kind: CallKind,
    pub start: Timestamp,
    pub end: Timestamp,
    /// Limit of the reply in tokens.
    pub max_tokens: u32,
    pub outcome: CallOutcome,
    /// `None` unless the subscriber wants texts.
    pub content: Option<CallContent>,
}

/// The outcome of a model call. Tokens are those that the provider reported.
#[derive(Debug)]
pub struct CallOutcome {
    pub usage: Usage,
    pub cache_write_tokens: Option<u64>,
    /// Why the model stopped, in the words of the GenAI conventions; `None` if the call failed.
    pub finish_reason: Option<String>,
    /// Class of the error; `None` if there is a reply.
    pub error_type: Option<&'static str>,
}

impl CallOutcome {
    pub(super) fn from_result(result: &Result<Reply, CallError>) -> Self {
        match result {
            Ok(reply) => Self {
                usage: reply.usage.clone(),
                cache_write_tokens: reply.cache_write_tokens,
                finish_reason: Some(finish_reason(&reply.stop).to_owned()),
                error_type: None,
            },
            Err(error) => Self {
                usage: error.usage.as_deref().cloned().unwrap_or_default(),
                cache_write_tokens: None,
                finish_reason: None,
                error_type: Some(error.class.as_str()),
            },
        }
    }
}

/// Returns the reason in the words of the conventions.
pub(super) fn finish_reason(stop: &StopReason) -> &str {
    match stop {
        StopReason::End => "stop",
        StopReason::ToolCalls => "tool_call",
        StopReason::MaxTokens => "length",
        StopReason::Refused => "content_filter",
        StopReason::Other(why) => why,
    }
}

/// A call of a tool.
#[derive(Debug)]
pub struct ToolCallRecord {
    pub turn: Uuid,
    pub conversation: ConversationKey,
    pub agent_name: String,
    /// The provider's id of the call.
    pub id: String,
    pub name: String,
    pub start: Timestamp,
    pub end: Timestamp,
    /// `None` if it succeeded.
    pub error_type: Option<&'static str>,
    /// `None` unless the subscriber wants texts.
    pub content: Option<ToolContent>,
}
