//! The operation `trash.empty`.

use chorus_base::error::{Error, Result};
use chorus_proto::methods::trash::{EmptyParams, EmptyResult};
use jiff::Timestamp;

use super::Trash;
use crate::ops::session::import::OnProgress;

/// Deletes everything in the trash, or only older entries. Reports the number of deleted entries.
///
/// # Errors
/// `invalid_params`, `storage_failed`; entries that were deleted before stay deleted.
pub async fn empty(trash: &Trash, params: EmptyParams, mut progress: OnProgress) -> Result<EmptyResult> {
    let before = params.older_than.as_deref().map(|text| parse_cutoff(text, trash.clock.now())).transpose()?;
    let _one_at_a_time = trash.agents.lock.lock().await;
    let _no_restores = trash.sessions_lock.write().await;
    super::recovery::recover_unfinished(trash).await?;
    let mut deleted = Vec::new();
    let mut entries = super::list_entries(&trash.home).await?;
    entries.retain(|entry| before.is_none_or(|before| entry.deleted_at <= before));
    let total = entries.len() as u64;
    for entry in entries {
        progress(deleted.len() as u64, total);
        deleted.push(super::to_trash_entry(&entry));
        super::delete_entry(&trash.agents.index, &trash.store, entry).await?;
    }
    tracing::info!(entries = deleted.len(), "trash emptied");
    Ok(EmptyResult { entries: deleted })
}

fn parse_cutoff(text: &str, now: Timestamp) -> Result<Timestamp> {
    let age = humantime::parse_duration(text.trim())
        .map_err(|e| Error::invalid(format!("not a duration: {text:?}: {e}")).hint("for example 30d or 12h"))?;
    Ok(now.checked_sub(age).unwrap_or(Timestamp::MIN))
}
