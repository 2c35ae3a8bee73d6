//! `context.pin`.

use chorus_proto::methods::context::{PinParams, PinResult};

use super::wrong_reply;
use crate::agent::event::{Reply, Verb};
use crate::clock::new_id;
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
        return Err(Failure::invalid(format!("a fact has 1 to {MAX_FACT} bytes")).hint("say it in a sentence or two"));
    }
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let verb = Verb::Pin { id: new_id().to_string(), text: text.to_owned() };
    finish(ops.registry.ask(agent.facts.id, verb).await?.reply)
}

/// The pinned facts as they are now.
pub(super) fn finish(reply: Reply) -> Result<PinResult> {
    match reply {
        Reply::Pinned(set) => Ok(PinResult { pinned_facts: set.pinned_facts }),
        _ => Err(wrong_reply()),
    }
}
