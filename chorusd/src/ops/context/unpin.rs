//! `context.unpin`.

use chorus_proto::methods::context::{PinResult, UnpinParams};

use super::pin::finish;
use crate::agent::event::Verb;
use crate::failure::Result;
use crate::ops::{Ops, select};

/// Takes a pinned fact out.
///
/// # Errors
/// `not_found`, `agent_not_found`, `storage_failed`.
pub async fn unpin(ops: &Ops, params: UnpinParams) -> Result<PinResult> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    finish(ops.registry.ask(agent.facts.id, Verb::Unpin { number: params.n }).await?.reply)
}
