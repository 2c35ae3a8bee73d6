//! The operation `context.unpin`.

use chorus_agent_core::event::AgentCommand;
use chorus_base::error::Result;
use chorus_proto::methods::context::{PinResult, UnpinParams};

use super::pin::to_pin_result;
use crate::ops::{Ops, resolve};

/// Removes a pinned fact.
pub async fn unpin(ops: &Ops, params: UnpinParams) -> Result<PinResult> {
    let agent = resolve::agent(ops, params.agent.as_deref()).await?;
    to_pin_result(ops.registry.ask(agent.settings.id, AgentCommand::Unpin { number: params.n }).await?.reply)
}
