//! The table of sessions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::{
    CatalogRead, CatalogWrite, DeletedSession, ImportedUsage, LineageRow, NewSession, ProjectFilter, SessionChanges,
    SessionName, SessionQuery, SessionRow, SessionStamp, SessionTable, ShortId, UnusedSession,
};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::SessionHeader;
use chorus_session::conversation::ConversationKey;
use jiff::Timestamp;
use uuid::Uuid;

use super::database::CatalogDb;
use super::{session_filter, session_listing, session_lookup, session_names, session_sources};
use crate::rows::to_bigint;

/// The table in PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresSessionTable {
    pub(crate) db: CatalogDb,
    pub(crate) changes: Arc<SessionChanges>,
}

impl SessionTable for PostgresSessionTable {
    fn insert(&self, new: NewSession) -> CatalogWrite<String> {
        self.insert_new(new)
    }

    fn upsert(&self, row: SessionRow) -> CatalogWrite<()> {
        self.upsert_found(&row)
    }

    fn undo_insert(&self, session: SessionHeader) -> CatalogWrite<()> {
        self.delete_inserted(&session)
    }

    fn update(&self, row: SessionRow) -> CatalogWrite<()> {
        self.update_row(&row, false, None)
    }

    fn replace(&self, row: SessionRow, usage: Option<Arc<ImportedUsage>>) -> CatalogWrite<()> {
        self.update_row(&row, true, usage)
    }

    fn move_to_agent(&self, row: SessionRow) -> CatalogWrite<()> {
        self.insert_moved(&row)
    }

    fn touch(&self, id: Uuid, at: Timestamp) -> CatalogWrite<()> {
        self.set_last_use(id, at)
    }

    fn delete(&self, id: Uuid) -> CatalogWrite<()> {
        self.delete_row(id, false)
    }

    fn purge(&self, id: Uuid) -> CatalogWrite<()> {
        self.delete_row(id, true)
    }

    fn get(&self, id: Uuid) -> CatalogRead<'_, Option<SessionRow>> {
        Box::pin(async move { Ok(session_lookup::get_all(&self.db, vec![id]).await?.pop()) })
    }

    fn get_all(&self, ids: Vec<Uuid>) -> CatalogRead<'_, Vec<SessionRow>> {
        Box::pin(session_lookup::get_all(&self.db, ids))
    }

    fn list(&self, listing: SessionQuery) -> CatalogRead<'_, (Vec<SessionRow>, u64)> {
        Box::pin(async move {
            let (rows, _, total) = session_listing::list(&self.db, &listing, false).await?;
            Ok((rows, total))
        })
    }

    fn list_with_short_ids(&self, listing: SessionQuery) -> CatalogRead<'_, (Vec<SessionRow>, Vec<ShortId>, u64)> {
        Box::pin(async move { session_listing::list(&self.db, &listing, true).await })
    }

    fn nth(&self, listing: SessionQuery) -> CatalogRead<'_, Option<SessionRow>> {
        Box::pin(session_listing::nth(&self.db, listing))
    }

    fn nth_newest(&self, conversation: ConversationKey, n: u64) -> CatalogRead<'_, Option<SessionRow>> {
        Box::pin(session_lookup::nth_newest(&self.db, conversation, n))
    }

    fn newest_and_names(
        &self,
        conversation: ConversationKey,
        base: String,
    ) -> CatalogRead<'_, (Option<SessionRow>, Vec<String>)> {
        Box::pin(session_lookup::newest_and_names(&self.db, conversation, base))
    }

    fn newest_of_each(&self, agents: Vec<Uuid>) -> CatalogRead<'_, Vec<Option<SessionRow>>> {
        Box::pin(session_lookup::newest_of_each(&self.db, agents))
    }

    fn newest_of_conversations(&self, conversations: Vec<ConversationKey>) -> CatalogRead<'_, Vec<Option<SessionRow>>> {
        Box::pin(session_lookup::newest_of_conversations(&self.db, conversations))
    }

    fn conversations_named(&self, agent: Uuid, name: String) -> CatalogRead<'_, Vec<Uuid>> {
        Box::pin(async move {
            let sql = "SELECT DISTINCT conversation_id FROM sessions WHERE agent_id = $1 AND conversation_name = $2
                 AND conversation_id <> agent_id";
            self.first_column(sql, agent, Some(name)).await
        })
    }

    fn names_with_base(&self, agent: Uuid, base: String) -> CatalogRead<'_, Vec<String>> {
        Box::pin(session_lookup::names_with_base(&self.db, agent, base))
    }

    fn list_named(&self, agent: Option<Uuid>, session_id: String) -> CatalogRead<'_, Vec<SessionRow>> {
        Box::pin(session_names::list_named(&self.db, agent, session_id))
    }

    fn list_with_prefix(&self, agent: Option<Uuid>, prefix: String) -> CatalogRead<'_, Vec<SessionRow>> {
        Box::pin(session_names::list_with_prefix(&self.db, agent, prefix))
    }

    fn list_with_slug(&self, agents: Vec<Uuid>, slug: String) -> CatalogRead<'_, Vec<SessionRow>> {
        Box::pin(session_names::list_with_slug(&self.db, agents, slug))
    }

    fn list_with_title_words(&self, agents: Vec<Uuid>, words: String) -> CatalogRead<'_, Vec<SessionRow>> {
        Box::pin(session_names::list_with_title_words(&self.db, agents, words))
    }

    fn short_ids(&self, ids: Vec<Uuid>) -> CatalogRead<'_, Vec<String>> {
        Box::pin(session_lookup::short_ids(&self.db, ids))
    }

    fn lineage(&self, agents: Vec<Uuid>) -> CatalogRead<'_, Vec<LineageRow>> {
        Box::pin(session_lookup::lineage(&self.db, agents))
    }

    fn names(&self, ids: Vec<Uuid>) -> CatalogRead<'_, HashMap<Uuid, SessionName>> {
        Box::pin(session_lookup::names(&self.db, ids))
    }

    fn names_at(&self, moments: Vec<(Uuid, Timestamp)>) -> CatalogRead<'_, Vec<Option<String>>> {
        Box::pin(session_lookup::names_at(&self.db, moments))
    }

    fn list_of_source(&self, program: String, conversation: String) -> CatalogRead<'_, Vec<SessionRow>> {
        Box::pin(session_sources::list_of_source(&self.db, program, conversation))
    }

    fn list_without_source(&self, started_at: Timestamp) -> CatalogRead<'_, Vec<SessionRow>> {
        Box::pin(session_sources::list_without_source(&self.db, started_at))
    }

    fn list_without_source_by_slug(&self, slug: String) -> CatalogRead<'_, Vec<SessionRow>> {
        Box::pin(session_sources::list_without_source_by_slug(&self.db, slug))
    }

    fn source_programs(&self) -> CatalogRead<'_, Vec<String>> {
        Box::pin(session_sources::list_programs(&self.db))
    }

    fn identities_of_agent(&self, agent: Uuid) -> CatalogRead<'_, Vec<(String, String)>> {
        Box::pin(session_sources::identities_of_agent(&self.db, agent))
    }

    fn count_by_program(&self) -> CatalogRead<'_, HashMap<String, (u64, u64)>> {
        Box::pin(session_sources::count_by_program(&self.db))
    }

    fn ids_with_source(&self) -> CatalogRead<'_, HashSet<Uuid>> {
        Box::pin(session_sources::ids_with_source(&self.db))
    }

    fn ids_of_project(&self, project: ProjectFilter) -> CatalogRead<'_, Vec<Uuid>> {
        Box::pin(async move { session_filter::ids_of_project(&self.db, &project).await })
    }

    fn ids_of_agent(&self, agent: Uuid) -> CatalogRead<'_, Vec<Uuid>> {
        Box::pin(self.first_column("SELECT id FROM sessions WHERE agent_id = $1", agent, None))
    }

    fn file_stamps(&self, agent: Uuid) -> CatalogRead<'_, Vec<(String, String)>> {
        Box::pin(async move {
            let sql = "SELECT session_id, file_stamp FROM sessions WHERE agent_id = $1";
            Ok(self.db.read(sql, &[&agent]).await?.iter().map(|row| (row.get(0), row.get(1))).collect())
        })
    }

    fn named_bodies(&self, keys: Vec<String>) -> CatalogRead<'_, HashSet<String>> {
        Box::pin(async move {
            let sql = "SELECT body_key FROM sessions WHERE body_key = ANY ($1)";
            let rows = self.db.read(sql, &[&keys]).await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }

    fn deleted_since(&self, since: Timestamp) -> CatalogRead<'_, Vec<DeletedSession>> {
        Box::pin(async move {
            let sql = "SELECT session_id, agent_id, deleted_at FROM deleted_sessions WHERE deleted_at >= $1 ORDER BY deleted_at";
            let rows = self.db.read(sql, &[&to_nanos(since)]).await?;
            let read = |row: &tokio_postgres::Row| DeletedSession {
                id: row.get(0),
                agent: row.get(1),
                deleted_at: from_nanos(row.get(2)),
            };
            Ok(rows.iter().map(read).collect())
        })
    }

    fn body_keys(&self, after: Option<String>, limit: u64) -> CatalogRead<'_, Vec<String>> {
        Box::pin(async move {
            let sql = "SELECT body_key FROM sessions WHERE body_key > $1 ORDER BY body_key LIMIT $2";
            let rows = self.db.read(sql, &[&after.unwrap_or_default(), &to_bigint(limit)]).await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }

    fn corrupt_names(&self, agent: Uuid) -> CatalogRead<'_, Vec<String>> {
        let sql = "SELECT session_id FROM sessions WHERE agent_id = $1 AND corrupt IS NOT NULL";
        Box::pin(self.first_column(sql, agent, None))
    }

    fn stamps_after(&self, after: i64, limit: u64) -> CatalogRead<'_, Vec<SessionStamp>> {
        Box::pin(async move {
            // Of rows that this process has inserted, later ones have higher numbers, and no other process inserts
            // rows of its agents.
            let sql = "SELECT serial, id, sha256, file_stamp FROM sessions WHERE serial > $1 AND agent_id = ANY ($2)
                 ORDER BY serial LIMIT $3";
            let rows = self.db.read(sql, &[&after, &self.db.grants.agents(), &to_bigint(limit)]).await?;
            let stamp = |row: &tokio_postgres::Row| SessionStamp {
                position: row.get(0),
                id: row.get(1),
                sha256: row.get(2),
                file_stamp: row.get(3),
            };
            Ok(rows.iter().map(stamp).collect())
        })
    }

    fn changes(&self) -> Arc<SessionChanges> {
        self.changes.clone()
    }

    fn commit_changes(&self) -> CatalogWrite<()> {
        self.db.write(Ok(None), Vec::new())
    }

    fn list_unused_since(&self, before: Timestamp) -> CatalogRead<'_, Vec<UnusedSession>> {
        Box::pin(async move {
            self.commit_changes().await?;
            let sql = "SELECT last_used_at, id, agent_id FROM sessions WHERE last_used_at < $1";
            let rows = self.db.read(sql, &[&to_nanos(before)]).await?;
            Ok(rows.iter().map(|row| (from_nanos(row.get(0)), row.get(1), row.get(2))).collect())
        })
    }

    fn get_unused_since(&self, id: Uuid, before: Timestamp) -> CatalogWrite<Option<SessionRow>> {
        self.read_if_unused(id, before)
    }
}

impl PostgresSessionTable {
    /// Reads the first column of a statement with an agent, and perhaps a text, as its parameters.
    async fn first_column<T>(&self, sql: &str, agent: Uuid, text: Option<String>) -> Result<Vec<T>>
    where
        T: for<'a> tokio_postgres::types::FromSql<'a>,
    {
        let rows = match &text {
            Some(text) => self.db.read(sql, &[&agent, text]).await?,
            None => self.db.read(sql, &[&agent]).await?,
        };
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}
