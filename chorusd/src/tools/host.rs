//! What tools ask of the rest of the daemon. The composition root gives it to them.

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::ToolContext;
use crate::error::Result;
use crate::requester::Requester;

/// The daemon as tools see it; `ops` is it.
pub trait ToolHost: Debug + Send + Sync {
    /// The agents there are, one a line.
    fn list_agents(&self, asker: Uuid) -> BoxFuture<'_, String>;

    /// Changes the asking agent's own configuration, and writes down the value before and after; what cannot be written down is not
    /// done.
    fn self_edit(&self, asker: ToolCaller, edit: SelfEdit) -> BoxFuture<'_, Result<()>>;

    /// Sessions of the asking agent in which all words of `query` stand together, as a text for a model.
    fn search_sessions(&self, asker: ToolCaller, query: String) -> BoxFuture<'_, Result<String>>;

    /// Begins a turn of another agent with this message, in which no person asks for anything. Ends when it is accepted, and says what
    /// became of it.
    fn send_to_agent(&self, asker: ToolCaller, agent: String, message: String) -> BoxFuture<'_, Result<String>>;
}

/// The call that asks.
#[derive(Debug, Clone)]
pub struct ToolCaller {
    pub agent: Uuid,
    pub agent_name: String,
    pub turn: Uuid,
    /// Who asked for the turn.
    pub requester: Requester,
    /// What the call does, as it was judged.
    pub action: String,
    /// The turn is to end.
    pub cancel: CancellationToken,
}

impl ToolCaller {
    /// The call of `scene` that does `action`.
    #[must_use]
    pub fn new(scene: &ToolContext, action: impl ToString) -> Self {
        Self {
            agent: scene.agent,
            agent_name: scene.agent_name.clone(),
            turn: scene.turn,
            requester: scene.requester.clone(),
            action: action.to_string(),
            cancel: scene.cancel.clone(),
        }
    }
}

/// What an agent changes of itself.
#[derive(Debug, Clone, PartialEq)]
pub enum SelfEdit {
    SystemPrompt(String),
    /// The name of a profile, or one inline.
    Permissions(Value),
    Model(String),
}
