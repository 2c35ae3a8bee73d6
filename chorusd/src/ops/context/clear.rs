//! `context.clear`.

use chorus_proto::methods::context::{ClearParams, ClearResult};

use super::wrong_reply;
use crate::agent::event::{Reply, Verb};
use crate::failure::Result;
use crate::ops::{Ops, select};

/// Discards the live context; `save` saves it first. Asking back is for the front doors.
///
/// # Errors
/// `agent_not_found`, `disk_full`, `storage_failed`.
pub async fn clear(ops: &Ops, params: ClearParams) -> Result<ClearResult> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    match ops.registry.ask(agent.facts.id, Verb::Clear { save: params.save }).await?.reply {
        Reply::Cleared(result) => Ok(*result),
        _ => Err(wrong_reply()),
    }
}
