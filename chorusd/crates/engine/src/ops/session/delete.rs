//! The operation `session.delete`.

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_proto::methods::session::{DeleteParams, DeleteResult};
use chorus_proto::methods::trash::TrashKind;
use chorus_runtime::run_blocking;
use chorus_store::catalog::SessionRow;
use chorus_store::trash;
use chorus_store::trash::{EntryMetadata, SessionMetadata, TrashItem};

use crate::agent::command;
use crate::ops::{Ops, resolve_agent, trash as ops_trash};

/// Moves a session to the trash.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `denied`, `disk_full`, `storage_failed`; the session is unchanged then.
pub async fn delete(ops: &Ops, params: DeleteParams) -> Result<DeleteResult> {
    let agent = resolve_agent::agent(ops, params.agent.as_deref()).await?;
    let row = ops.sessions.resolve(&agent, params.agent.is_some() && !params.own, &params.session).await?;
    let _no_restores = ops.sessions_lock.write().await;
    let _no_changes = ops.store.files.change_lock.lock().await;
    let row = reload_row(ops, row).await?;
    let shown = ops.sessions.describe(row.clone()).await?;
    let id = row.header.id;
    let trashed = move_to_trash(ops, &row, || ops.store.catalog.sessions.delete(id)).await?;
    tracing::info!(agent = %row.header.agent_name, session = %row.header.session_id, "session deleted");
    Ok(DeleteResult { session: shown, trash: trashed.map(|entry| entry.id) })
}

/// Reads the row again under the locks; fails with `session_not_found` if it was deleted meanwhile.
pub async fn reload_row(ops: &Ops, row: SessionRow) -> Result<SessionRow> {
    ops.store.catalog.sessions.get(row.header.id).await?.ok_or_else(|| {
        Error::new(ErrorKind::SessionNotFound, format!("{} was deleted in the meantime", row.header.session_id))
            .hint("`chorusctl context history` shows what there is")
    })
}

/// Detaches live contexts from the session, moves its file to the trash, and then calls `remove` for its row. Returns
/// `None` if there was no file.
///
/// # Errors
/// `disk_full`, `storage_failed`; everything is unchanged then.
pub async fn move_to_trash<Remove: Future<Output = Result<()>>>(
    ops: &Ops,
    row: &SessionRow,
    // A closure instead of the future itself, because creating the future queues the write.
    remove: impl FnOnce() -> Remove,
) -> Result<Option<TrashItem>> {
    let id = row.header.id;
    for (agent, session) in ops.registry.agents_referring_to(|session| session == id) {
        ops.registry.ask(agent, command::materialise(session)).await?;
    }
    let path = ops.sessions.path(&row.header).await?;
    let note = EntryMetadata {
        kind: TrashKind::Session,
        agent_id: row.header.agent_id,
        name: row.header.session_id.clone(),
        deleted_at: ops.clock.now(),
        from: path.strip_prefix(&ops.home).unwrap_or(&path).to_owned(),
        session: Some(SessionMetadata {
            id,
            agent_name: row.header.agent_name.clone(),
            sha256: row.sha256.clone(),
            last_used_at: row.last_used_at,
            place: Some(row.place),
        }),
        memory: None,
    };
    let (home, from) = (ops.home.clone(), path.clone());
    let trashed = run_blocking(move || match trash::move_in(&home, &from, &note) {
        Ok(entry) => Ok(Some(entry)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && from.symlink_metadata().is_err() => Ok(None),
        Err(e) => Err(Error::io("cannot move the session to the trash", &e)),
    })
    .await?;
    match (remove().await, trashed) {
        (Ok(()), None) => Ok(None),
        (Ok(()), Some(entry)) => Ok(Some(ops_trash::make_visible(entry).await)),
        (Err(failure), trashed) => {
            if let Some(entry) = trashed {
                let back = run_blocking(move || {
                    trash::restore_to(&entry, &path).map_err(|e| Error::io("cannot undo a delete", &e))
                });
                if let Err(undo) = back.await {
                    tracing::error!(session = %id, failure = %undo, "a failed delete could not be undone");
                }
            }
            Err(failure)
        }
    }
}
