//! Rows of contexts and conversations, without their messages.

use chorus_proto::TokenPair;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::{ContextNo, Totals};
use jiff::Timestamp;
use uuid::Uuid;

/// Row of a new context.
#[derive(Debug, Clone)]
pub struct NewContextRow {
    pub conversation: ConversationKey,
    pub started_at: Timestamp,
    pub idle_deadline_at: Option<Timestamp>,
    pub parent: Option<Uuid>,
}

/// Row of a live context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextRow {
    pub context: ContextNo,
    pub conversation: ConversationKey,
    pub started_at: Timestamp,
    pub last_activity_at: Timestamp,
    pub idle_deadline_at: Option<Timestamp>,
    pub totals: Totals,
    pub parent: Option<Uuid>,
    /// Number of messages, from the first on, that `saved_session` holds.
    pub saved_messages: u64,
    pub saved_session: Option<Uuid>,
    /// The session that the first record refers to.
    pub base_session: Option<Uuid>,
    /// The turn that the context is in, or was in when the daemon ended.
    pub turn: Option<Uuid>,
    /// Cost of resuming.
    pub restoration: TokenPair,
}

/// A conversation other than `main`. It exists from the first request for it; closing it does not remove it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationRow {
    pub key: ConversationKey,
    /// Unique among the agent's conversations.
    pub name: String,
    /// The cause of it, for example a Discord thread, unique within the agent; `None` if somebody made it by name.
    pub origin: Option<String>,
    /// A title that it was given; `None` if it has the one of its newest session.
    pub title: Option<String>,
    pub created_at: Timestamp,
    /// `None` while it is open.
    pub closed_at: Option<Timestamp>,
    /// True if requests that ask for the selected conversation mean this one.
    pub is_selected: bool,
    /// The name of the git worktree and branch that it has or is about to get, unique among the agent's conversations.
    pub worktree: Option<String>,
}
