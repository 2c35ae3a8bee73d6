//! The operation `context.clear`.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_proto::methods::context::{ClearParams, ClearResult};

use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;

/// Discards the live context; `save` saves it first. Clients ask for confirmation themselves.
pub async fn clear(agents: &AgentResolver, registry: &Arc<Registry>, params: ClearParams) -> Result<ClearResult> {
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    registry.ask(target.key, command::clear(params.save)).await
}
