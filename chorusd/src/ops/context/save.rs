//! `context.save`.

use chorus_proto::methods::context::{SaveParams, SaveResult};

use super::wrong_reply;
use crate::agent::event::{Reply, Verb};
use crate::failure::Result;
use crate::ops::session::tag::tags;
use crate::ops::{Ops, select};

/// Saves a checkpoint; the context goes on unless `clear` is said.
///
/// # Errors
/// `nothing_to_save`, `invalid_params`, `agent_not_found`, `disk_full`, `storage_failed`.
pub async fn save(ops: &Ops, params: SaveParams) -> Result<SaveResult> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let tags = tags(params.tag)?;
    let description = params.description.filter(|text| !text.trim().is_empty());
    let verb = Verb::Save { description, tags, clear: params.clear };
    match ops.registry.ask(agent.facts.id, verb).await?.reply {
        // The file has a summary in the conversation's own words already; a model's takes its place.
        Reply::Saved { session, cleared, pending, warning } => Ok(SaveResult {
            session: *session,
            cleared,
            summary_pending: pending,
            warnings: warning.into_iter().collect(),
        }),
        _ => Err(wrong_reply()),
    }
}
