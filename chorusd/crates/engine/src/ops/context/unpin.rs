//! The operation `context.unpin`.

use chorus_base::error::Result;
use chorus_proto::methods::context::{PinResult, UnpinParams};

use crate::agent::command;
use crate::ops::{Ops, resolve};

/// Removes a pinned fact.
pub async fn unpin(ops: &Ops, params: UnpinParams) -> Result<PinResult> {
    let agent = resolve::agent(ops, params.agent.as_deref()).await?;
    let pinned_facts = ops.registry.ask(agent.settings.id, command::unpin(params.n)).await?.pinned_facts;
    Ok(PinResult { pinned_facts })
}
