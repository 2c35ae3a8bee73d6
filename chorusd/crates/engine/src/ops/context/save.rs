//! The operation `context.save`.

use chorus_base::error::Result;
use chorus_proto::methods::context::{SaveParams, SaveResult};

use crate::agent::command;
use crate::ops::session::tag::parse_tags;
use crate::ops::{Ops, resolve};

/// Saves the live context as a session; the context continues unless `clear` is set.
///
/// # Errors
/// `nothing_to_save`, `invalid_params`, `agent_not_found`, `disk_full`, `storage_failed`.
pub async fn save(ops: &Ops, params: SaveParams) -> Result<SaveResult> {
    let agent = resolve::agent(ops, params.agent.as_deref()).await?;
    let tags = parse_tags(params.tag)?;
    let description = params.description.filter(|text| !text.trim().is_empty());
    let saved = ops.registry.ask(agent.settings.id, command::save(description, tags, params.clear)).await?;
    Ok(SaveResult {
        session: *saved.session,
        cleared: saved.cleared,
        // The file has an extractive summary already; a model's summary replaces it later.
        summary_pending: saved.summary_pending,
        warnings: saved.warning.into_iter().collect(),
    })
}
