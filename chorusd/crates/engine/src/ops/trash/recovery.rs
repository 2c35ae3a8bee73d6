//! Recovery after a crash: completes or undoes moves between the trash and the catalog that were interrupted.
//!
//! An operation that moves something in or out hides the entry first, and shows or removes it last. In between, the
//! description, the place of the content and the row reveal how far it came, whichever operation it was:
//!
//! | content | row | operation | recovery |
//! |---|---|---|---|
//! | at its place | exists | a delete that moved nothing, or a completed restore | removes the entry |
//! | at its place | missing | a restore without its row | adds the row, removes the entry |
//! | in the trash | exists | a delete without its commit | session: deletes the row; agent: moves it back |
//! | in the trash | missing | a completed delete, or a restore that moved nothing | shows the entry |

use std::path::PathBuf;

use chorus_base::error::{Error, Result};
use chorus_catalog::SessionRow;
use chorus_proto::methods::trash::TrashKind;
use chorus_proto::{AgentStatus, ErrorKind};
use chorus_runtime::run_blocking;
use chorus_store::session_files::path_of;
use chorus_store::trash::{EntryMetadata, SessionMetadata, Stage, TrashItem};
use chorus_store::{session_form, trash};
use futures_util::future::BoxFuture;

use super::Trash;
use super::restore::add_session_row;

/// The action that recovery takes for an entry. The log prints the variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resolution {
    /// Shows it.
    Show,
    /// Removes it, because its content is elsewhere.
    Discard,
    /// Completes its deletion.
    Delete,
}

/// Recovers the entries whose move or deletion was interrupted. Nothing else may change the trash meanwhile. An entry
/// that cannot be recovered is left for the next start.
pub async fn recover_unfinished(trash: &Trash) -> Result<()> {
    let home = trash.home.clone();
    let entries =
        run_blocking(move || trash::list_unfinished(&home).map_err(|e| Error::io("cannot read the trash", &e)));
    for entry in entries.await? {
        recover_entry(trash, entry).await;
    }
    Ok(())
}

/// Recovers every entry, since earlier versions did not hide entries.
pub async fn recover_all(trash: &Trash) -> Result<()> {
    for entry in super::list_entries(&trash.home).await? {
        // Locked for each entry, so that other requests do not wait long.
        let _one_at_a_time = trash.agents.lock.lock().await;
        let _no_restores = trash.sessions_lock.write().await;
        if entry.dir.is_dir() {
            recover_entry(trash, entry).await;
        }
    }
    Ok(())
}

fn recover_entry<'a>(trash: &'a Trash, entry: TrashItem) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        let id = entry.id.clone();
        let was = entry.stage;
        let settled = async {
            let fate = resolve(trash, &entry).await?;
            match fate {
                Resolution::Show if was == Stage::Settled => return Ok(None),
                Resolution::Show => drop(super::make_visible(entry).await),
                Resolution::Delete => super::delete_entry(&trash.agents.index, &trash.store, entry).await?,
                Resolution::Discard => {
                    let discarded = run_blocking(move || {
                        trash::remove_if_empty(&entry);
                        Ok(())
                    });
                    discarded.await?;
                }
            }
            Ok::<_, Error>(Some(fate))
        };
        match settled.await {
            Ok(None) => {}
            Ok(Some(fate)) => {
                tracing::info!(entry = %id, ?fate, "completed an interrupted move into or out of the trash")
            }
            Err(failure) => {
                tracing::error!(entry = %id, %failure, "cannot complete an interrupted move into or out of the trash")
            }
        }
    })
}

async fn resolve(trash: &Trash, entry: &TrashItem) -> Result<Resolution> {
    let Some(note) = &entry.metadata else {
        let empty = entry.stage != Stage::Settled && !entry.has_content();
        return Ok(if empty { Resolution::Discard } else { Resolution::Show });
    };
    match (note.kind, &note.session, &note.memory) {
        _ if entry.stage == Stage::Deleting => Ok(Resolution::Delete),
        (TrashKind::Memory, _, Some(row)) => {
            let remembered = entry.stage == Stage::Moving && trash.store.catalog.memories.contains(row.id).await?;
            Ok(if remembered { Resolution::Discard } else { Resolution::Show })
        }
        (TrashKind::Session, Some(of), _) => resolve_session(trash, entry, note, of).await,
        _ => resolve_agent(trash, entry, note).await,
    }
}

async fn resolve_session(
    trash: &Trash,
    entry: &TrashItem,
    note: &EntryMetadata,
    of: &SessionMetadata,
) -> Result<Resolution> {
    let catalog = &trash.store.catalog;
    let own = |row: &SessionRow| row.header.agent_id == note.agent_id && row.header.session_id == note.name;
    let row = catalog.sessions.get(of.id).await?.filter(own);
    let agent = trash.agents.index.by_id(note.agent_id);
    let place = agent.as_ref().map_or_else(
        || trash.home.join(&note.from),
        |agent| session_form::find(path_of(&agent.settings.dir, &note.name)),
    );
    let at_its_place = exists(place.clone()).await?;
    if entry.has_content() {
        // Of a session whose body is elsewhere a missing file says nothing.
        if row.as_ref().is_some_and(|row| !trash.store.is_shared(row)) && !at_its_place {
            catalog.sessions.delete(of.id).await?;
            tracing::warn!(session = %note.name, "completed an interrupted delete; the session is in the trash");
        }
        return Ok(Resolution::Show);
    }
    if let (None, true, Some(agent)) = (&row, at_its_place, agent) {
        match add_session_row(trash, &agent.settings, &note.name, of, place).await {
            // Another session has its id or its name; the scan assigns others to it.
            Err(failure) if failure.kind != ErrorKind::AlreadyExists => return Err(failure),
            _ => {}
        }
    }
    Ok(if at_its_place || entry.stage == Stage::Moving { Resolution::Discard } else { Resolution::Show })
}

async fn resolve_agent(trash: &Trash, entry: &TrashItem, note: &EntryMetadata) -> Result<Resolution> {
    let place = trash.home.join(&note.from);
    let at_its_place = exists(place.clone()).await?;
    if !entry.has_content() {
        return Ok(if at_its_place || entry.stage == Stage::Moving { Resolution::Discard } else { Resolution::Show });
    }
    let row = trash.store.catalog.agents.list_by_id(vec![note.agent_id]).await?.pop();
    let active = row.is_some_and(|row| row.status == AgentStatus::Active && trash.home.join(row.dir) == place);
    if !active || at_its_place {
        return Ok(Resolution::Show);
    }
    let moved = entry.clone();
    let back = run_blocking(move || {
        trash::move_out(&moved, &place).map_err(|e| Error::io(format_args!("cannot create {}", place.display()), &e))
    });
    back.await?;
    tracing::warn!(agent = %note.name, "undid an interrupted destroy; the agent is unchanged");
    Ok(Resolution::Discard)
}

async fn exists(path: PathBuf) -> Result<bool> {
    run_blocking(move || Ok(path.symlink_metadata().is_ok())).await
}
