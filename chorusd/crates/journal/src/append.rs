//! Appends of messages, and the start and end of turns.

use chorus_proto::methods::context::AppendResult;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::{ContextNo, StoredMessage};
use jiff::Timestamp;
use uuid::Uuid;

use crate::NewContextRow;

/// Messages to append to a live context.
#[derive(Debug, Clone)]
pub struct AppendRequest {
    pub conversation: ConversationKey,
    pub agent_name: String,
    /// Name of the conversation; `None` for `main`.
    pub conversation_name: Option<String>,
    pub context: ContextNo,
    /// Row to insert if this is the first append to the context.
    pub begin: NewContextRow,
    /// Number of the first record.
    pub first: u32,
    pub messages: Vec<StoredMessage>,
    pub at: Timestamp,
    pub deadline: Option<Timestamp>,
    /// Idempotency key: an append with a known key returns the first result.
    pub key: Option<String>,
    /// Start or end of a turn to store in the same commit.
    pub mark: Option<TurnMark>,
}

/// Outcome of an [`AppendRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalAppendOutcome {
    Added(AppendResult),
    /// The key was known: nothing was added.
    RepeatedAppend(AppendResult),
    /// The turn's key was known: nothing was added.
    RepeatedTurn(KnownTurn),
}

/// Start or end of a turn, stored in the same commit as messages.
#[derive(Debug, Clone)]
pub enum TurnMark {
    Open {
        turn: Uuid,
        key: Option<String>,
    },
    /// `answer` is JSON.
    Close {
        turn: Uuid,
        key: Option<String>,
        answer: Option<String>,
    },
}

/// A turn that was started with the same key before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTurn {
    pub turn: Uuid,
    /// JSON; `None` if the turn ended without an answer or has not ended.
    pub answer: Option<String>,
}
