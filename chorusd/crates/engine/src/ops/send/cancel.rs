//! The operation `send.cancel`.

use chorus_base::error::Result;
use chorus_proto::methods::send::{CancelParams, CancelResult};
use uuid::Uuid;

use crate::agent::command;
use crate::ops::{Ops, resolve};

/// Cancels the running turn, or the turn `turn_id`.
pub async fn cancel(ops: &Ops, params: CancelParams) -> Result<CancelResult> {
    let agent = resolve::agent(ops, params.agent.as_deref()).await?;
    Ok(CancelResult { turn_id: ops.registry.ask(agent.settings.id, command::cancel(params.turn_id)).await? })
}

/// Cancels a queued turn. Returns false if it has begun, and continues.
pub async fn cancel_queued(ops: &Ops, agent: Uuid, turn: Uuid) -> Result<bool> {
    Ok(ops.registry.ask(agent, command::cancel_queued(turn)).await?.is_some())
}
