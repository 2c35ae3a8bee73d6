//! `trash.empty`.

use chorus_proto::methods::trash::{EmptyParams, EmptyResult, TrashKind};
use jiff::Timestamp;

use crate::failure::{Failure, Result};
use crate::ops::{Ops, blocking};
use crate::store::trash;

/// Deletes what is in the trash, or what has been there for long.
///
/// # Errors
/// `invalid_params`, `storage_failed`; what was deleted before that stays deleted.
pub async fn empty(ops: &Ops, params: EmptyParams) -> Result<EmptyResult> {
    let before = params.older_than.as_deref().map(|text| before(text, ops.clock.now())).transpose()?;
    let _one_at_a_time = ops.agents_lock.lock().await;
    let _no_restores = ops.sessions_lock.write().await;
    let mut gone = Vec::new();
    for entry in super::entries(ops).await? {
        if before.is_some_and(|before| entry.deleted_at > before) {
            continue;
        }
        gone.push(super::shown(&entry));
        let agent = entry.note.as_ref().filter(|note| note.kind == TrashKind::Agent).map(|note| note.agent_id);
        if let Some(agent) = agent.filter(|agent| ops.directory.by_id(*agent).is_none()) {
            ops.store.catalog.forget_memories(agent).await?;
        }
        blocking(move || {
            trash::remove(&entry).map_err(|e| Failure::io(format_args!("cannot delete {}", entry.dir.display()), &e))
        })
        .await?;
    }
    tracing::info!(entries = gone.len(), "trash emptied");
    Ok(EmptyResult { entries: gone })
}

fn before(text: &str, now: Timestamp) -> Result<Timestamp> {
    let age = humantime::parse_duration(text.trim())
        .map_err(|e| Failure::invalid(format!("{text:?} is no duration: {e}")).hint("for example 30d or 12h"))?;
    Ok(now.checked_sub(age).unwrap_or(Timestamp::MIN))
}
