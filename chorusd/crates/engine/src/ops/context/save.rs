//! The operation `context.save`.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_proto::methods::context::{SaveParams, SaveResult};

use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::session::tag::parse_tags;

/// Saves the live context as a session; the context continues unless `clear` is set.
///
/// # Errors
/// `nothing_to_save`, `invalid_params`, `agent_not_found`, `disk_full`, `storage_failed`.
pub async fn save(agents: &AgentResolver, registry: &Arc<Registry>, params: SaveParams) -> Result<SaveResult> {
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let tags = parse_tags(params.tag)?;
    let description = params.description.filter(|text| !text.trim().is_empty());
    let saved = registry.ask(target.key, command::save(description, tags, params.clear)).await?;
    Ok(SaveResult {
        session: *saved.session,
        cleared: saved.cleared,
        // The file has an extractive summary already; a model's summary replaces it later.
        summary_pending: saved.summary_pending,
        unchanged_since: saved.unchanged_since,
        warnings: saved.warning.into_iter().collect(),
    })
}
