//! The operation `send.cancel`.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_proto::methods::send::{CancelParams, CancelResult};
use chorus_session::conversation::ConversationKey;
use uuid::Uuid;

use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;

/// Cancels the running turn, or the turn `turn_id`.
pub async fn cancel(agents: &AgentResolver, registry: &Arc<Registry>, params: CancelParams) -> Result<CancelResult> {
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    Ok(CancelResult { turn_id: registry.ask(target.key, command::cancel(params.turn_id)).await? })
}

/// Cancels a queued turn. Returns false if it has begun, and continues.
pub async fn cancel_queued(registry: &Arc<Registry>, conversation: ConversationKey, turn: Uuid) -> Result<bool> {
    Ok(registry.ask(conversation, command::cancel_queued(turn)).await?.is_some())
}
