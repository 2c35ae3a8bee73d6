//! The interface through which tools use the rest of the daemon. The composition root provides it.

use std::fmt::Debug;
use std::time::Duration;

use chorus_base::error::Result;
use chorus_base::requester::Requester;
use chorus_session::conversation::ConversationKey;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::ToolContext;

/// The daemon as seen by tools; implemented in `ops`.
pub trait ToolHost: Debug + Send + Sync {
    /// Returns the list of agents, one per line.
    fn list_agents(&self, asker: Uuid) -> BoxFuture<'_, String>;

    /// Changes the calling agent's own configuration and records the old and new value in the audit log. If they cannot
    /// be recorded, nothing is changed.
    fn self_edit(&self, asker: ToolCaller, edit: SelfEdit) -> BoxFuture<'_, Result<()>>;

    /// Finds or reads messages of the calling agent's past, and returns a text for the model.
    fn search_sessions(&self, asker: ToolCaller, question: SessionQuestion) -> BoxFuture<'_, Result<String>>;

    /// Returns the name of the conversation's git worktree, and gives it one that is free if it has none.
    fn reserve_worktree(&self, conversation: ConversationKey) -> BoxFuture<'_, Result<String>>;

    /// Changes or lists the calling agent's own schedules, and returns a text for the model.
    fn schedule(&self, asker: ToolCaller, request: ScheduleRequest) -> BoxFuture<'_, Result<String>>;

    /// Starts a turn of another agent with this message, which counts as requested by no person. Ends when the message
    /// is accepted, or with `wait` when the turn has ended or that time is over. Returns a text for the model.
    fn send_to_agent(
        &self,
        asker: ToolCaller,
        agent: String,
        message: String,
        wait: Option<Duration>,
    ) -> BoxFuture<'_, Result<String>>;
}

/// The tool call that uses the daemon.
#[derive(Debug, Clone)]
pub struct ToolCaller {
    pub agent: Uuid,
    pub agent_name: String,
    pub conversation: ConversationKey,
    pub turn: Uuid,
    /// The requester of the turn.
    pub requester: Requester,
    /// The action of the call, as it was judged.
    pub action: String,
    /// Cancelled when the turn is to end.
    pub cancel: CancellationToken,
}

impl ToolCaller {
    /// Returns the caller for a call in `ctx` that performs `action`.
    #[must_use]
    pub fn new(ctx: &ToolContext, action: impl ToString) -> Self {
        Self {
            agent: ctx.agent,
            agent_name: ctx.agent_name.clone(),
            conversation: ctx.conversation,
            turn: ctx.turn,
            requester: ctx.requester.clone(),
            action: action.to_string(),
            cancel: ctx.cancel.clone(),
        }
    }
}

/// A question about the agent's past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionQuestion {
    /// Messages with these words.
    Find(String),
    /// The messages of a session around one of them, counted from 1.
    Read { session: String, message: u64 },
}

/// A request about the agent's own schedules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleRequest {
    Add {
        name: String,
        message: String,
        cron: Option<String>,
        every_seconds: Option<u64>,
        in_seconds: Option<u64>,
        time_zone: Option<String>,
    },
    List,
    Remove {
        name: String,
    },
}

/// A change that an agent makes to itself.
#[derive(Debug, Clone, PartialEq)]
pub enum SelfEdit {
    SystemPrompt(String),
    /// The name of a profile, or an inline profile.
    Permissions(Value),
    Model(String),
}
