//! The operation `trash.empty`.

use chorus_base::error::{Error, Result};
use chorus_proto::methods::trash::{EmptyParams, EmptyResult};
use jiff::Timestamp;

use crate::ops::Ops;

/// Deletes everything in the trash, or only older entries.
///
/// # Errors
/// `invalid_params`, `storage_failed`; entries that were deleted before stay deleted.
pub async fn empty(ops: &Ops, params: EmptyParams) -> Result<EmptyResult> {
    let before = params.older_than.as_deref().map(|text| parse_cutoff(text, ops.clock.now())).transpose()?;
    let _one_at_a_time = ops.agent_resolver.lock.lock().await;
    let _no_restores = ops.sessions_lock.write().await;
    super::recovery::recover_unfinished(ops).await?;
    let mut gone = Vec::new();
    for entry in super::list_entries(&ops.home).await? {
        if before.is_some_and(|before| entry.deleted_at > before) {
            continue;
        }
        gone.push(super::to_trash_entry(&entry));
        super::delete_entry(&ops.agents, &ops.store.catalog.memories, entry).await?;
    }
    tracing::info!(entries = gone.len(), "trash emptied");
    Ok(EmptyResult { entries: gone })
}

fn parse_cutoff(text: &str, now: Timestamp) -> Result<Timestamp> {
    let age = humantime::parse_duration(text.trim())
        .map_err(|e| Error::invalid(format!("{text:?} is no duration: {e}")).hint("for example 30d or 12h"))?;
    Ok(now.checked_sub(age).unwrap_or(Timestamp::MIN))
}
