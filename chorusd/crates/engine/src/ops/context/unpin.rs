//! The operation `context.unpin`.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_proto::methods::context::{PinResult, UnpinParams};

use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;

/// Removes a pinned fact.
pub async fn unpin(agents: &AgentResolver, registry: &Arc<Registry>, params: UnpinParams) -> Result<PinResult> {
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let pinned_facts = registry.ask(agent.settings.id, command::unpin(params.n)).await?.pinned_facts;
    Ok(PinResult { pinned_facts })
}
