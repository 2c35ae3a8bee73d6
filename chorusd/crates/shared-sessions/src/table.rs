//! The table of sessions whose rows name bodies. Reads and writes of headers pass through; a write that brings messages
//! stores them first.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::{
    CatalogRead, CatalogWrite, DeletedSession, ImportedUsage, LineageRow, NewSession, ProjectFilter, SessionChanges,
    SessionName, SessionQuery, SessionRow, SessionStamp, SessionTable, ShortId, UnusedSession,
};
use chorus_proto::SessionHeader;
use chorus_session::conversation::ConversationKey;
use jiff::Timestamp;
use uuid::Uuid;

use crate::SharedSessions;

/// The table in front of the one in the database.
#[derive(Debug)]
pub(crate) struct SharedSessionTable(pub(crate) Arc<SharedSessions>);

/// Runs a write to its end, also if nobody waits for it.
fn run<T: Send + 'static>(write: impl Future<Output = Result<T>> + Send + 'static) -> CatalogWrite<T> {
    let running = chorus_runtime::spawn(write);
    Box::pin(async move { running.await.map_err(|e| Error::internal(e.to_string()))? })
}

impl SharedSessions {
    /// Carries out a write that may take the body from a session, and then deletes the body.
    async fn write_and_drop_body<T>(&self, id: Uuid, write: impl Future<Output = Result<T>>) -> Result<T> {
        let before = self.sessions.get(id).await?.and_then(|row| row.body);
        let written = write.await?;
        // The write is done: if the row cannot be read now, the sweep deletes the body.
        if let Some(before) = before
            && let Ok(now) = self.sessions.get(id).await
            && now.and_then(|row| row.body).as_ref() != Some(&before)
        {
            self.delete_body(before);
        }
        Ok(written)
    }
}

impl SessionTable for SharedSessionTable {
    fn insert(&self, mut new: NewSession) -> CatalogWrite<String> {
        let shared = self.0.clone();
        run(async move {
            shared.write_body(&mut new.row).await?;
            // After an error the row may be there nevertheless: its body stays, and is swept if no row names it.
            shared.sessions.insert(new).await
        })
    }

    fn upsert(&self, mut row: SessionRow) -> CatalogWrite<()> {
        let shared = self.0.clone();
        run(async move {
            shared.write_body(&mut row).await?;
            shared.sessions.upsert(row).await
        })
    }

    fn undo_insert(&self, session: SessionHeader) -> CatalogWrite<()> {
        let shared = self.0.clone();
        run(async move {
            let id = session.id;
            shared.write_and_drop_body(id, async { shared.sessions.undo_insert(session).await }).await
        })
    }

    fn update(&self, row: SessionRow) -> CatalogWrite<()> {
        self.0.sessions.update(row)
    }

    fn replace(&self, mut row: SessionRow, usage: Option<Arc<ImportedUsage>>) -> CatalogWrite<()> {
        if row.body.as_ref().is_some_and(|body| body.sha256 == row.sha256) {
            return self.0.sessions.replace(row, usage);
        }
        let shared = self.0.clone();
        run(async move {
            shared.write_body(&mut row).await?;
            let id = row.header.id;
            shared.write_and_drop_body(id, async { shared.sessions.replace(row, usage).await }).await
        })
    }

    fn move_to_agent(&self, mut row: SessionRow) -> CatalogWrite<()> {
        let shared = self.0.clone();
        run(async move {
            shared.write_body(&mut row).await?;
            let id = row.header.id;
            shared.write_and_drop_body(id, async { shared.sessions.move_to_agent(row).await }).await
        })
    }

    fn touch(&self, id: Uuid, at: Timestamp) -> CatalogWrite<()> {
        self.0.sessions.touch(id, at)
    }

    fn delete(&self, id: Uuid) -> CatalogWrite<()> {
        let shared = self.0.clone();
        run(async move { shared.write_and_drop_body(id, async { shared.sessions.delete(id).await }).await })
    }

    fn purge(&self, id: Uuid) -> CatalogWrite<()> {
        let shared = self.0.clone();
        run(async move { shared.write_and_drop_body(id, async { shared.sessions.purge(id).await }).await })
    }

    fn get(&self, id: Uuid) -> CatalogRead<'_, Option<SessionRow>> {
        self.0.sessions.get(id)
    }

    fn get_all(&self, ids: Vec<Uuid>) -> CatalogRead<'_, Vec<SessionRow>> {
        self.0.sessions.get_all(ids)
    }

    fn list(&self, listing: SessionQuery) -> CatalogRead<'_, (Vec<SessionRow>, u64)> {
        self.0.sessions.list(listing)
    }

    fn list_with_short_ids(&self, listing: SessionQuery) -> CatalogRead<'_, (Vec<SessionRow>, Vec<ShortId>, u64)> {
        self.0.sessions.list_with_short_ids(listing)
    }

    fn nth(&self, listing: SessionQuery) -> CatalogRead<'_, Option<SessionRow>> {
        self.0.sessions.nth(listing)
    }

    fn nth_newest(&self, conversation: ConversationKey, n: u64) -> CatalogRead<'_, Option<SessionRow>> {
        self.0.sessions.nth_newest(conversation, n)
    }

    fn newest_and_names(
        &self,
        conversation: ConversationKey,
        base: String,
    ) -> CatalogRead<'_, (Option<SessionRow>, Vec<String>)> {
        self.0.sessions.newest_and_names(conversation, base)
    }

    fn newest_of_each(&self, agents: Vec<Uuid>) -> CatalogRead<'_, Vec<Option<SessionRow>>> {
        self.0.sessions.newest_of_each(agents)
    }

    fn newest_of_conversations(&self, conversations: Vec<ConversationKey>) -> CatalogRead<'_, Vec<Option<SessionRow>>> {
        self.0.sessions.newest_of_conversations(conversations)
    }

    fn conversations_named(&self, agent: Uuid, name: String) -> CatalogRead<'_, Vec<Uuid>> {
        self.0.sessions.conversations_named(agent, name)
    }

    fn names_with_base(&self, agent: Uuid, base: String) -> CatalogRead<'_, Vec<String>> {
        self.0.sessions.names_with_base(agent, base)
    }

    fn list_named(&self, agent: Option<Uuid>, session_id: String) -> CatalogRead<'_, Vec<SessionRow>> {
        self.0.sessions.list_named(agent, session_id)
    }

    fn list_with_prefix(&self, agent: Option<Uuid>, prefix: String) -> CatalogRead<'_, Vec<SessionRow>> {
        self.0.sessions.list_with_prefix(agent, prefix)
    }

    fn list_with_slug(&self, agents: Vec<Uuid>, slug: String) -> CatalogRead<'_, Vec<SessionRow>> {
        self.0.sessions.list_with_slug(agents, slug)
    }

    fn list_with_title_words(&self, agents: Vec<Uuid>, words: String) -> CatalogRead<'_, Vec<SessionRow>> {
        self.0.sessions.list_with_title_words(agents, words)
    }

    fn short_ids(&self, ids: Vec<Uuid>) -> CatalogRead<'_, Vec<String>> {
        self.0.sessions.short_ids(ids)
    }

    fn lineage(&self, agents: Vec<Uuid>) -> CatalogRead<'_, Vec<LineageRow>> {
        self.0.sessions.lineage(agents)
    }

    fn names(&self, ids: Vec<Uuid>) -> CatalogRead<'_, HashMap<Uuid, SessionName>> {
        self.0.sessions.names(ids)
    }

    fn names_at(&self, moments: Vec<(Uuid, Timestamp)>) -> CatalogRead<'_, Vec<Option<String>>> {
        self.0.sessions.names_at(moments)
    }

    fn list_of_source(&self, program: String, conversation: String) -> CatalogRead<'_, Vec<SessionRow>> {
        self.0.sessions.list_of_source(program, conversation)
    }

    fn list_without_source(&self, started_at: Timestamp) -> CatalogRead<'_, Vec<SessionRow>> {
        self.0.sessions.list_without_source(started_at)
    }

    fn list_without_source_by_slug(&self, slug: String) -> CatalogRead<'_, Vec<SessionRow>> {
        self.0.sessions.list_without_source_by_slug(slug)
    }

    fn source_programs(&self) -> CatalogRead<'_, Vec<String>> {
        self.0.sessions.source_programs()
    }

    fn identities_of_agent(&self, agent: Uuid) -> CatalogRead<'_, Vec<(String, String)>> {
        self.0.sessions.identities_of_agent(agent)
    }

    fn count_by_program(&self) -> CatalogRead<'_, HashMap<String, (u64, u64)>> {
        self.0.sessions.count_by_program()
    }

    fn ids_with_source(&self) -> CatalogRead<'_, HashSet<Uuid>> {
        self.0.sessions.ids_with_source()
    }

    fn ids_of_project(&self, project: ProjectFilter) -> CatalogRead<'_, Vec<Uuid>> {
        self.0.sessions.ids_of_project(project)
    }

    fn ids_of_agent(&self, agent: Uuid) -> CatalogRead<'_, Vec<Uuid>> {
        self.0.sessions.ids_of_agent(agent)
    }

    fn file_stamps(&self, agent: Uuid) -> CatalogRead<'_, Vec<(String, String)>> {
        self.0.sessions.file_stamps(agent)
    }

    fn named_bodies(&self, keys: Vec<String>) -> CatalogRead<'_, HashSet<String>> {
        self.0.sessions.named_bodies(keys)
    }

    fn deleted_since(&self, since: Timestamp) -> CatalogRead<'_, Vec<DeletedSession>> {
        self.0.sessions.deleted_since(since)
    }

    fn body_keys(&self, after: Option<String>, limit: u64) -> CatalogRead<'_, Vec<String>> {
        self.0.sessions.body_keys(after, limit)
    }

    fn corrupt_names(&self, agent: Uuid) -> CatalogRead<'_, Vec<String>> {
        self.0.sessions.corrupt_names(agent)
    }

    fn stamps_after(&self, after: i64, limit: u64) -> CatalogRead<'_, Vec<SessionStamp>> {
        self.0.sessions.stamps_after(after, limit)
    }

    fn changes(&self) -> Arc<SessionChanges> {
        self.0.sessions.changes()
    }

    fn commit_changes(&self) -> CatalogWrite<()> {
        self.0.sessions.commit_changes()
    }

    fn list_unused_since(&self, before: Timestamp) -> CatalogRead<'_, Vec<UnusedSession>> {
        self.0.sessions.list_unused_since(before)
    }

    fn get_unused_since(&self, id: Uuid, before: Timestamp) -> CatalogWrite<Option<SessionRow>> {
        self.0.sessions.get_unused_since(id, before)
    }
}
