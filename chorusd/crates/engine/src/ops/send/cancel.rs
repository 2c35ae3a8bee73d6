//! The operation `send.cancel`.

use chorus_agent_core::event::{AgentCommand, CommandOutcome};
use chorus_base::error::Result;
use chorus_proto::methods::send::{CancelParams, CancelResult};
use uuid::Uuid;

use crate::ops::context::wrong_reply;
use crate::ops::{Ops, resolve};

/// Cancels the running turn, or the turn `turn_id`.
pub async fn cancel(ops: &Ops, params: CancelParams) -> Result<CancelResult> {
    let agent = resolve::agent(ops, params.agent.as_deref()).await?;
    match ops.registry.ask(agent.settings.id, AgentCommand::Cancel(params.turn_id)).await?.reply {
        CommandOutcome::Cancelled(turn_id) => Ok(CancelResult { turn_id }),
        _ => Err(wrong_reply()),
    }
}

/// Cancels a queued turn. Returns false if it has begun, and continues.
pub async fn cancel_queued(ops: &Ops, agent: Uuid, turn: Uuid) -> Result<bool> {
    match ops.registry.ask(agent, AgentCommand::CancelQueued(turn)).await?.reply {
        CommandOutcome::Cancelled(turn_id) => Ok(turn_id.is_some()),
        _ => Err(wrong_reply()),
    }
}
