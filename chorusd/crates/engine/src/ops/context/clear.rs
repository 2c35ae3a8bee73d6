//! The operation `context.clear`.

use chorus_agent_core::event::{AgentCommand, CommandOutcome};
use chorus_base::error::Result;
use chorus_proto::methods::context::{ClearParams, ClearResult};

use super::wrong_reply;
use crate::ops::{Ops, resolve};

/// Discards the live context; `save` saves it first. Clients ask for confirmation themselves.
pub async fn clear(ops: &Ops, params: ClearParams) -> Result<ClearResult> {
    let agent = resolve::agent(ops, params.agent.as_deref()).await?;
    match ops.registry.ask(agent.settings.id, AgentCommand::Clear { save: params.save }).await?.reply {
        CommandOutcome::Cleared(result) => Ok(*result),
        _ => Err(wrong_reply()),
    }
}
