//! `context.pin`, `context.unpin`.

use chorus_proto::methods::context::{PinParams, PinResult, UnpinParams};
use uuid::Uuid;

use super::wrong_reply;
use crate::agent::event::{Reply, Verb};
use crate::failure::{Failure, Result};
use crate::ops::{Ops, select};

/// Longest fact in bytes: pins are part of every window.
const MAX_FACT: usize = 4096;

/// Pins a fact by hand.
///
/// # Errors
/// `invalid_params`, `agent_not_found`, `storage_failed`.
pub async fn pin(ops: &Ops, params: PinParams) -> Result<PinResult> {
    let text = params.fact.trim();
    if text.is_empty() || text.len() > MAX_FACT {
        return Err(Failure::invalid(format!("a fact has 1 to {MAX_FACT} bytes")));
    }
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let verb = Verb::Pin { id: Uuid::now_v7().to_string(), text: text.to_owned() };
    finish(ops.registry.ask(agent.facts.id, verb).await?.reply)
}

/// Takes a pinned fact out.
///
/// # Errors
/// `not_found`, `agent_not_found`, `storage_failed`.
pub async fn unpin(ops: &Ops, params: UnpinParams) -> Result<PinResult> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    finish(ops.registry.ask(agent.facts.id, Verb::Unpin { number: params.n }).await?.reply)
}

fn finish(reply: Reply) -> Result<PinResult> {
    match reply {
        Reply::Pinned(set) => Ok(PinResult { pinned_facts: set.pinned_facts }),
        _ => Err(wrong_reply()),
    }
}
