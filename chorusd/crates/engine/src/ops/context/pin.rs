//! The operation `context.pin`.

use chorus_agent_core::event::{AgentCommand, CommandOutcome};
use chorus_base::error::{Error, Result};
use chorus_base::new_id;
use chorus_proto::methods::context::{PinParams, PinResult};

use super::wrong_reply;
use crate::ops::{Ops, resolve};

/// The limit on a fact in bytes; pinned facts are part of every window.
const MAX_FACT_BYTES: usize = 4096;

/// Pins a fact.
pub async fn pin(ops: &Ops, params: PinParams) -> Result<PinResult> {
    let text = params.fact.trim();
    if text.is_empty() || text.len() > MAX_FACT_BYTES {
        return Err(
            Error::invalid(format!("a fact has 1 to {MAX_FACT_BYTES} bytes")).hint("say it in a sentence or two")
        );
    }
    let agent = resolve::agent(ops, params.agent.as_deref()).await?;
    let verb = AgentCommand::Pin { id: new_id().to_string(), text: text.to_owned() };
    to_pin_result(ops.registry.ask(agent.settings.id, verb).await?.reply)
}

/// Returns the pinned facts from the actor's reply.
pub(super) fn to_pin_result(reply: CommandOutcome) -> Result<PinResult> {
    match reply {
        CommandOutcome::Pinned(set) => Ok(PinResult { pinned_facts: set.pinned_facts }),
        _ => Err(wrong_reply()),
    }
}
