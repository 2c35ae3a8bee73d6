//! Completes or undoes what a crash cut short between the trash and the catalog.
//!
//! A verb that moves something in or out hides the entry first, and shows or removes it last. In between, the note, the place
//! of the content and the row tell how far it came, whichever verb it was:
//!
//! | content | row | the verb | what becomes of it |
//! |---|---|---|---|
//! | at its place | there | a delete that moved nothing, or a restore that is done | the entry goes |
//! | at its place | gone | a restore without its row | the row is added, the entry goes |
//! | in the trash | there | a delete without its commit | of a session the row goes; an agent goes back to its place |
//! | in the trash | gone | a delete that is done, or a restore that moved nothing | the entry is shown |

use std::path::PathBuf;

use chorus_proto::methods::trash::TrashKind;
use chorus_proto::{AgentStatus, ErrorKind};

use super::restore::add_row;
use crate::failure::{Failure, Result};
use crate::ops::{Ops, blocking};
use crate::store::catalog::SessionRow;
use crate::store::session_files::path_of;
use crate::store::trash::{self, Note, SessionNote, Stage, Trashed};

/// The decision about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is shown.
    Show,
    /// Its content is elsewhere: it goes.
    Discard,
    /// Its deletion is completed.
    Delete,
}

/// Settles the entries whose move or deletion did not end. Nothing else may change the trash meanwhile.
///
/// # Errors
/// A trash that cannot be read. An entry that cannot be settled is left for the next start.
pub async fn unfinished(ops: &Ops) -> Result<()> {
    let home = ops.home.clone();
    let entries = blocking(move || trash::unfinished(&home).map_err(|e| Failure::io("cannot read the trash", &e)));
    for entry in entries.await? {
        settle(ops, entry).await;
    }
    Ok(())
}

/// Settles every entry: earlier versions hid none.
///
/// # Errors
/// As [`unfinished`].
pub async fn all(ops: &Ops) -> Result<()> {
    for entry in super::entries(ops).await? {
        // One at a time, so that nobody waits for long.
        let _one_at_a_time = ops.agents_lock.lock().await;
        let _no_restores = ops.sessions_lock.write().await;
        if entry.dir.is_dir() {
            settle(ops, entry).await;
        }
    }
    Ok(())
}

async fn settle(ops: &Ops, entry: Trashed) {
    let id = entry.id.clone();
    let was = entry.stage;
    let settled = async {
        let fate = fate(ops, &entry).await?;
        match fate {
            Fate::Show if was == Stage::Settled => return Ok(None),
            Fate::Show => drop(super::show(entry).await),
            Fate::Delete => super::delete(ops, entry).await?,
            Fate::Discard => {
                let discarded = blocking(move || {
                    trash::discard(&entry);
                    Ok(())
                });
                discarded.await?;
            }
        }
        Ok::<_, Failure>(Some(fate))
    };
    match settled.await {
        Ok(None) => {}
        Ok(Some(fate)) => {
            tracing::info!(entry = %id, ?fate, "a move into or out of the trash that was cut short is settled")
        }
        Err(failure) => tracing::error!(entry = %id, %failure, "a move into or out of the trash cannot be settled"),
    }
}

async fn fate(ops: &Ops, entry: &Trashed) -> Result<Fate> {
    let Some(note) = &entry.note else {
        let empty = entry.stage != Stage::Settled && !entry.has_content();
        return Ok(if empty { Fate::Discard } else { Fate::Show });
    };
    match (note.kind, &note.session, &note.memory) {
        _ if entry.stage == Stage::Deleting => Ok(Fate::Delete),
        (TrashKind::Memory, _, Some(row)) => {
            let remembered = entry.stage == Stage::Moving && ops.store.catalog.is_remembered(row.id).await?;
            Ok(if remembered { Fate::Discard } else { Fate::Show })
        }
        (TrashKind::Session, Some(of), _) => session(ops, entry, note, of).await,
        _ => agent(ops, entry, note).await,
    }
}

async fn session(ops: &Ops, entry: &Trashed, note: &Note, of: &SessionNote) -> Result<Fate> {
    let catalog = &ops.store.catalog;
    let own = |row: &SessionRow| row.header.agent_id == note.agent_id && row.header.session_id == note.name;
    let row = catalog.session(of.id).await?.filter(own);
    let agent = ops.directory.by_id(note.agent_id);
    let place = agent.as_ref().map_or_else(|| ops.home.join(&note.from), |agent| path_of(&agent.facts.dir, &note.name));
    let at_its_place = there(place.clone()).await?;
    if entry.has_content() {
        if row.is_some() && !at_its_place {
            catalog.remove_session(of.id).await?;
            tracing::warn!(session = %note.name, "a delete that was cut short is completed; the session is in the trash");
        }
        return Ok(Fate::Show);
    }
    if let (None, true, Some(agent)) = (&row, at_its_place, agent) {
        match add_row(ops, &agent.facts, &note.name, of, place).await {
            // Another session has its id or its name: the scan gives it others.
            Err(failure) if failure.kind != ErrorKind::AlreadyExists => return Err(failure),
            _ => {}
        }
    }
    Ok(if at_its_place || entry.stage == Stage::Moving { Fate::Discard } else { Fate::Show })
}

async fn agent(ops: &Ops, entry: &Trashed, note: &Note) -> Result<Fate> {
    let place = ops.home.join(&note.from);
    let at_its_place = there(place.clone()).await?;
    if !entry.has_content() {
        return Ok(if at_its_place || entry.stage == Stage::Moving { Fate::Discard } else { Fate::Show });
    }
    let row = ops.store.catalog.agents_by_id(vec![note.agent_id]).await?.pop();
    let active = row.is_some_and(|row| row.status == AgentStatus::Active && ops.home.join(row.dir) == place);
    if !active || at_its_place {
        return Ok(Fate::Show);
    }
    let moved = entry.clone();
    let back = blocking(move || {
        trash::move_out(&moved, &place).map_err(|e| Failure::io(format_args!("cannot make {}", place.display()), &e))
    });
    back.await?;
    tracing::warn!(agent = %note.name, "a destroy that was cut short is undone; the agent is there as before");
    Ok(Fate::Discard)
}

async fn there(path: PathBuf) -> Result<bool> {
    blocking(move || Ok(path.symlink_metadata().is_ok())).await
}
