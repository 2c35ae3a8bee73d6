//! Moves sessions to the trash.

use std::path::PathBuf;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::SessionRow;
use chorus_clock::Clock;
use chorus_proto::ErrorKind;
use chorus_proto::methods::trash::TrashKind;
use chorus_runtime::run_blocking;
use chorus_store::trash::{EntryMetadata, SessionMetadata, TrashItem};
use chorus_store::{Store, session_form, trash};
use tokio::sync::RwLock;

use super::SessionReader;
use crate::agent::agent_index::AgentIndex;
use crate::agent::command;
use crate::agent::registry::Registry;
use crate::capture::{DeletedConversations, identity};
use crate::ops::trash as ops_trash;
use crate::search::SearchService;

/// Moves sessions to the trash: on request, when they are purged, or when they were not used for long.
#[derive(Debug)]
pub struct SessionTrash {
    pub store: Arc<Store>,
    pub agents: Arc<AgentIndex>,
    pub sessions: Arc<SessionReader>,
    pub registry: Arc<Registry>,
    /// Locked for writing while a session is moved, so that none is restored meanwhile.
    pub sessions_lock: Arc<RwLock<()>>,
    /// Keeps capture from bringing a session back.
    pub deleted: Arc<DeletedConversations>,
    pub search: Arc<SearchService>,
    pub clock: Clock,
    pub home: PathBuf,
}

impl SessionTrash {
    /// Reads the row again under the locks; fails with `session_not_found` if it was deleted meanwhile.
    pub(super) async fn reload_row(&self, row: SessionRow) -> Result<SessionRow> {
        self.store.catalog.sessions.get(row.header.id).await?.ok_or_else(|| {
            Error::new(ErrorKind::SessionNotFound, format!("{} was deleted", row.header.session_id))
                .hint("list sessions: chorusctl history")
        })
    }

    /// Copies the file of a session to this machine if its body is elsewhere, because the trash keeps files only. Before the
    /// locks.
    pub(super) async fn fetch_file(&self, row: &SessionRow) -> Result<()> {
        self.sessions.local_path(row).await.map(drop)
    }

    /// Fails if the file that [`SessionTrash::fetch_file`] has copied is gone again, or out of date.
    pub(super) async fn require_file(&self, row: &SessionRow) -> Result<()> {
        let dir = self.sessions.agent_dir(&row.header).await?;
        if self.store.is_elsewhere(row, &dir) {
            return Err(Error::busy());
        }
        Ok(())
    }

    /// Keeps capture and other machines from bringing a conversation back whose newest session is deleted.
    async fn keep_away(&self, row: &SessionRow) -> Result<()> {
        let (program, conversation) = identity(&row.header);
        let table = &self.store.catalog.sessions;
        let revisions = table.list_of_source(program.clone(), conversation.clone()).await?;
        let revision = |row: &SessionRow| row.header.source.as_ref().map_or(0, |source| source.revision);
        if revisions.iter().any(|other| revision(other) > revision(row)) {
            return Ok(());
        }
        self.deleted.add(&program, &conversation).await
    }

    /// Detaches live contexts from the session, moves its file to the trash, and then calls `remove` for its row. Returns
    /// `None` if there was no file.
    ///
    /// # Errors
    /// `disk_full`, `storage_failed`; everything is unchanged then.
    pub(super) async fn move_in<Remove: Future<Output = Result<()>>>(
        &self,
        row: &SessionRow,
        // A closure instead of the future itself, because creating the future queues the write.
        remove: impl FnOnce() -> Remove,
    ) -> Result<Option<TrashItem>> {
        let id = row.header.id;
        for (conversation, session) in self.registry.conversations_referring_to(|session| session == id) {
            self.registry.ask(conversation, command::materialise(session)).await?;
        }
        // First, because a crash in between must not bring it back.
        self.keep_away(row).await?;
        let path = self.sessions.path(&row.header).await?;
        let note = EntryMetadata {
            kind: TrashKind::Session,
            agent_id: row.header.agent_id,
            name: row.header.session_id.clone(),
            deleted_at: self.clock.now(),
            from: path.strip_prefix(&self.home).unwrap_or(&path).to_owned(),
            session: Some(SessionMetadata {
                id,
                agent_name: row.header.agent_name.clone(),
                sha256: row.sha256.clone(),
                last_used_at: row.last_used_at,
                place: Some(row.place),
            }),
            memory: None,
        };
        let (home, from) = (self.home.clone(), path.clone());
        let deleted = path.clone();
        run_blocking(move || session_form::delete_shadowed(&deleted)).await?;
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
                        tracing::error!(session = %id, failure = %undo, "cannot undo a failed delete");
                    }
                }
                Err(failure)
            }
        }
    }
}
