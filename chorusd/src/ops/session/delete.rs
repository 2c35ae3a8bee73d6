//! `session.delete`.

use chorus_proto::ErrorKind;
use chorus_proto::methods::session::{DeleteParams, DeleteResult};
use chorus_proto::methods::trash::TrashKind;

use crate::agent::event::Verb;
use crate::failure::{Failure, Result};
use crate::ops::{Ops, blocking, select, trash as ops_trash, view};
use crate::store::catalog::SessionRow;
use crate::store::trash::{self, Note, SessionNote, Trashed};

/// Moves a session to the trash.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `denied`, `disk_full`, `storage_failed`; the session is as before then.
pub async fn delete(ops: &Ops, params: DeleteParams) -> Result<DeleteResult> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let row = select::session(ops, &agent, params.agent.is_some() && !params.own, &params.session).await?;
    let _no_restores = ops.sessions_lock.write().await;
    let _no_changes = ops.store.files.amending.lock().await;
    let row = still_there(ops, row).await?;
    let shown = view::session(ops, row.clone()).await?;
    let id = row.header.id;
    let trashed = take_away(ops, &row, || ops.store.catalog.remove_session(id)).await?;
    tracing::info!(agent = %row.header.agent_name, session = %row.header.session_id, "session deleted");
    Ok(DeleteResult { session: shown, trash: trashed.map(|entry| entry.id) })
}

/// The row as it is now that nobody else may take it away.
///
/// # Errors
/// `session_not_found`.
pub async fn still_there(ops: &Ops, row: SessionRow) -> Result<SessionRow> {
    ops.store.catalog.session(row.header.id).await?.ok_or_else(|| {
        Failure::new(ErrorKind::SessionNotFound, format!("{} was deleted in the meantime", row.header.session_id))
            .hint("`chorusctl context history` shows what there is")
    })
}

/// Lets live contexts go on without the session, moves its file to the trash, and then has its row removed. `None`:
/// there was no file.
///
/// # Errors
/// `disk_full`, `storage_failed`; everything is as before then.
pub async fn take_away<Remove: Future<Output = Result<()>>>(
    ops: &Ops,
    row: &SessionRow,
    // Not the future itself: a write is queued when it is called for.
    remove: impl FnOnce() -> Remove,
) -> Result<Option<Trashed>> {
    let id = row.header.id;
    for (agent, session) in ops.registry.referring_to(|session| session == id) {
        ops.registry.ask(agent, Verb::Materialise(session)).await?;
    }
    let path = view::path(ops, &row.header).await?;
    let note = Note {
        kind: TrashKind::Session,
        agent_id: row.header.agent_id,
        name: row.header.session_id.clone(),
        deleted_at: ops.clock.now(),
        from: path.strip_prefix(&ops.home).unwrap_or(&path).to_owned(),
        session: Some(SessionNote {
            id,
            agent_name: row.header.agent_name.clone(),
            sha256: row.sha256.clone(),
            last_used_at: row.last_used_at,
            place: Some(row.place),
        }),
        memory: None,
    };
    let (home, from) = (ops.home.clone(), path.clone());
    let trashed = blocking(move || match trash::put(&home, &from, &note) {
        Ok(entry) => Ok(Some(entry)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && from.symlink_metadata().is_err() => Ok(None),
        Err(e) => Err(Failure::io("cannot move the session to the trash", &e)),
    })
    .await?;
    match (remove().await, trashed) {
        (Ok(()), None) => Ok(None),
        (Ok(()), Some(entry)) => Ok(Some(ops_trash::show(entry).await)),
        (Err(failure), trashed) => {
            if let Some(entry) = trashed {
                let back = blocking(move || {
                    trash::take_out(&entry, &path).map_err(|e| Failure::io("cannot undo a delete", &e))
                });
                if let Err(undo) = back.await {
                    tracing::error!(session = %id, failure = %undo, "a failed delete could not be undone");
                }
            }
            Err(failure)
        }
    }
}
