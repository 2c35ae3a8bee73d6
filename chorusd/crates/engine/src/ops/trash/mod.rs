//! The operations `trash.*`.

pub mod empty;
pub mod list;
mod merge_agent;
pub mod recovery;
pub mod restore;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_clock::Clock;
use chorus_proto::methods::trash::{TrashEntry, TrashKind};
use chorus_proto::{AgentStatus, ErrorKind};
use chorus_runtime::run_blocking;
use chorus_session::selector::MIN_PREFIX;
use chorus_store::trash::TrashItem;
use chorus_store::{Store, trash};
use tokio::sync::RwLock;
use uuid::Uuid;

use crate::agent::agent_index::AgentIndex;
use crate::capture::DeletedConversations;
use crate::ops::agent::AgentResolver;

/// The trash of a home, with the locks that a change of it takes.
#[derive(Debug)]
pub struct Trash {
    pub store: Arc<Store>,
    /// Its lock keeps agents from being made, renamed or destroyed meanwhile.
    pub agents: Arc<AgentResolver>,
    /// Locked for writing, so that no session is restored meanwhile.
    pub sessions_lock: Arc<RwLock<()>>,
    /// Capture continues with a conversation that is restored.
    pub deleted: Arc<DeletedConversations>,
    pub clock: Clock,
    pub home: PathBuf,
}

/// Returns the entries of the trash, newest first.
pub async fn list_entries(home: &Path) -> Result<Vec<TrashItem>> {
    let home = home.to_owned();
    run_blocking(move || trash::list(&home).map_err(|e| Error::io("cannot read the trash", &e))).await
}

/// Deletes an entry; if it is an agent that no longer exists, also its memories, and with it or a session the usage of
/// imported conversations. An entry that is being moved in may be
/// deleted directly. Sessions of a deleted agent whose bodies are elsewhere are purged.
///
/// # Errors
/// An error of the disk or the database; the rest of the entry stays visible in the trash then.
pub async fn delete_entry(agents: &AgentIndex, store: &Store, entry: TrashItem) -> Result<()> {
    let failed =
        |dir: &Path, e: &std::io::Error| Error::io(format_args!("cannot completely delete {}", dir.display()), e);
    // From here on recovery after a crash completes the deletion.
    let entry = run_blocking(move || trash::begin_delete(&entry).map_err(|e| failed(&entry.dir, &e))).await?;
    let agent = entry.metadata.as_ref().filter(|note| note.kind == TrashKind::Agent).map(|note| note.agent_id);
    let session = entry.metadata.as_ref().and_then(|note| note.session.as_ref()).map(|session| session.id);
    let agent = agent.filter(|agent| agents.by_id(*agent).is_none());
    // Another node may have one with this id, made again of files that were kept there.
    let rows = match agent.filter(|_| store.ownership.is_some()) {
        Some(agent) => store.catalog.agents.list_by_id(vec![agent]).await?,
        None => Vec::new(),
    };
    let agent = agent.filter(|_| rows.iter().all(|row| row.status != AgentStatus::Active));
    if let Err(failure) = delete_rows(store, agent, session).await {
        let _ = run_blocking(move || trash::settle(&entry).map_err(|e| failed(&entry.dir, &e))).await;
        return Err(failure);
    }
    run_blocking(move || trash::delete_entry(&entry).map_err(|e| failed(&entry.dir.with_file_name(&entry.id), &e)))
        .await
}

/// Deletes the rows of a deleted agent and of a session, unless the session exists again.
async fn delete_rows(store: &Store, agent: Option<Uuid>, session: Option<Uuid>) -> Result<()> {
    let catalog = &store.catalog;
    if let Some(agent) = agent {
        if store.bodies.is_some() {
            for id in catalog.sessions.ids_of_agent(agent).await? {
                catalog.sessions.purge(id).await?;
            }
        }
        if let Some(files) = &store.agent_files {
            files.delete_of_agent(agent).await?;
        }
        if let Some(workspaces) = &store.workspaces {
            workspaces.delete_of_agent(agent).await?;
        }
        if let Some(root) = store.workspace_root.clone() {
            run_blocking(move || root.delete(agent)).await?;
        }
        catalog.memories.delete_own(agent).await?;
        catalog.schedules.delete_of_agent(agent).await?;
        catalog.imported_usage.delete_of_agent(agent).await?;
    }
    match session {
        Some(session) if catalog.sessions.get(session).await?.is_none() => catalog.imported_usage.delete(session).await,
        _ => Ok(()),
    }
}

/// Makes an entry visible whose move into the trash is complete; if that fails, the next start does it.
pub async fn make_visible(entry: TrashItem) -> TrashItem {
    let hidden = entry.clone();
    let settled = run_blocking(move || trash::settle(&entry).map_err(|e| Error::io("cannot show it", &e)));
    settled.await.unwrap_or_else(|failure| {
        tracing::warn!(entry = %hidden.id, %failure, "cannot show a trash entry until the next start");
        hidden
    })
}

/// Finds the entry that `text` selects: by its id, the UUID in it, or the id of its memory or session, or a prefix of one of these,
/// or by an unambiguous name.
fn find_entry(entries: Vec<TrashItem>, text: &str) -> Result<TrashItem> {
    let named = |entry: &TrashItem| entry.metadata.as_ref().is_some_and(|note| note.name == text);
    let begins = |entry: &TrashItem| {
        let uuid = entry.id.split_once('_').map_or("", |(_, uuid)| uuid);
        let note = entry.metadata.as_ref();
        let remembered = note.and_then(|note| note.memory.as_ref()).map(|row| row.id.to_string());
        let session = note.and_then(|note| note.session.as_ref()).map(|session| session.id.to_string());
        let ids = [
            entry.id.as_str(),
            uuid,
            remembered.as_deref().unwrap_or_default(),
            session.as_deref().unwrap_or_default(),
        ];
        text.len() >= MIN_PREFIX && ids.iter().any(|id| id.starts_with(text))
    };
    let mut found: Vec<TrashItem> = entries.iter().filter(|entry| entry.id == text || named(entry)).cloned().collect();
    if found.is_empty() {
        found = entries.into_iter().filter(begins).collect();
    }
    let excerpt: String = text.chars().take(80).collect();
    match found.len() {
        0 => Err(Error::new(ErrorKind::NotFound, format!("no {excerpt:?} in the trash"))
            .hint("list the trash: chorusctl trash list")),
        1 => Ok(found.remove(0)),
        several => {
            let ids: Vec<_> = found.iter().map(|entry| entry.id.as_str()).collect();
            Err(Error::new(ErrorKind::Ambiguous, format!("{excerpt:?} matches {several} trash entries"))
                .hint(format!("one of: {}", ids.join(", "))))
        }
    }
}

fn to_trash_entry(entry: &TrashItem) -> TrashEntry {
    let note = entry.metadata.as_ref();
    TrashEntry {
        id: entry.id.clone(),
        kind: note.map(|note| note.kind),
        name: note.map_or_else(|| entry.id.clone(), |note| note.name.clone()),
        agent_name: note.filter(|note| note.kind != TrashKind::Agent).and_then(|note| {
            let session = note.session.as_ref().map(|session| &session.agent_name);
            session.or(note.memory.as_ref().map(|row| &row.agent_name)).cloned()
        }),
        deleted_at: entry.deleted_at,
        path: entry.dir.to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trashed(id: &str) -> TrashItem {
        TrashItem {
            id: id.into(),
            stage: trash::Stage::Settled,
            dir: id.into(),
            metadata: None,
            deleted_at: jiff::Timestamp::default(),
        }
    }

    #[test]
    fn an_entry_is_meant_by_its_beginning() {
        let all = || vec![trashed("2026-01-01T00-00-00Z_3f0b8c1e"), trashed("2026-01-01T00-00-00Z_aaaa1111")];
        assert_eq!(find_entry(all(), "3f0b").unwrap().id, all()[0].id);
        assert_eq!(find_entry(all(), "2026-01").unwrap_err().kind, ErrorKind::Ambiguous);
        assert_eq!(find_entry(all(), "3f0").unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(find_entry(all(), "").unwrap_err().kind, ErrorKind::NotFound);
    }
}
