//! The operation `context.pin`.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::new_id;
use chorus_proto::methods::context::{PinParams, PinResult};

use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;

/// The limit on a fact in bytes; pinned facts are part of every window.
const MAX_FACT_BYTES: usize = 4096;

/// Pins a fact.
pub async fn pin(agents: &AgentResolver, registry: &Arc<Registry>, params: PinParams) -> Result<PinResult> {
    let text = params.fact.trim();
    if text.is_empty() || text.len() > MAX_FACT_BYTES {
        return Err(Error::invalid(format!("a fact must have 1 to {MAX_FACT_BYTES} bytes"))
            .hint("shorten it to one or two sentences"));
    }
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let pin = command::pin(new_id().to_string(), text.to_owned());
    let pinned_facts = registry.ask(agent.settings.id, pin).await?.pinned_facts;
    Ok(PinResult { pinned_facts })
}
