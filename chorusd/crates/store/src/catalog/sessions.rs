//! The table of sessions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chorus_catalog::{
    CatalogRead, CatalogWrite, DeletedSession, ImportedUsage, LineageRow, NewSession, ProjectFilter, SessionChanges,
    SessionName, SessionQuery, SessionRow, SessionStamp, SessionTable, ShortId, UnusedSession,
};
use chorus_journal::to_nanos;
use chorus_proto::SessionHeader;
use chorus_session::conversation::ConversationKey;
use jiff::Timestamp;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::newest_sessions::{
    select_conversations_named, select_names_with_base, select_newest_of_each, select_nth_newest,
};
use super::session_listing::{read_page, select_page};
use super::short_ids::select_short_ids;
use super::{
    CatalogDb, imported_usage, lineage, purge, session_changes, session_names, session_rows, session_sources,
    stale_sessions,
};

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteSessionTable {
    pub(super) db: CatalogDb,
    pub(super) changes: Arc<SessionChanges>,
}

impl SessionTable for SqliteSessionTable {
    fn insert(&self, new: NewSession) -> CatalogWrite<String> {
        if new.is_one_of_many {
            return Box::pin(self.db.writer.submit_deferred(move |conn| session_rows::insert_new(conn, new)));
        }
        self.db.write(move |conn| session_rows::insert_new(conn, new))
    }

    fn upsert(&self, row: SessionRow) -> CatalogWrite<()> {
        self.db.write(move |conn| session_rows::upsert(conn, &row))
    }

    fn undo_insert(&self, session: SessionHeader) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            session_rows::delete_exact(conn, &session)?;
            imported_usage::delete(conn, session.id)
        })
    }

    fn update(&self, row: SessionRow) -> CatalogWrite<()> {
        self.db.write(move |conn| session_rows::update(conn, &row))
    }

    fn replace(&self, row: SessionRow, usage: Option<Arc<ImportedUsage>>) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            session_rows::replace(conn, &row)?;
            usage.map_or(Ok(()), |usage| imported_usage::record(conn, row.header.id, &usage))
        })
    }

    fn move_to_agent(&self, row: SessionRow) -> CatalogWrite<()> {
        self.db.write(move |conn| session_rows::move_to_agent(conn, &row))
    }

    fn touch(&self, id: Uuid, at: Timestamp) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.prepare_cached("UPDATE sessions SET last_used_at = ?2 WHERE id = ?1")?
                .execute(params![id.as_bytes(), to_nanos(at)])?;
            Ok(())
        })
    }

    fn delete(&self, id: Uuid) -> CatalogWrite<()> {
        self.db.write(move |conn| session_rows::delete(conn, id))
    }

    fn purge(&self, id: Uuid) -> CatalogWrite<()> {
        self.db.write(move |conn| purge::purge_session(conn, id))
    }

    fn get(&self, id: Uuid) -> CatalogRead<'_, Option<SessionRow>> {
        self.db.read(move |conn| session_rows::select(conn, id))
    }

    fn get_all(&self, ids: Vec<Uuid>) -> CatalogRead<'_, Vec<SessionRow>> {
        self.db.read(move |conn| session_rows::select_all(conn, &ids))
    }

    fn list(&self, listing: SessionQuery) -> CatalogRead<'_, (Vec<SessionRow>, u64)> {
        self.db.read(move |conn| select_page(&*conn.unchecked_transaction()?, &listing))
    }

    fn list_with_short_ids(&self, listing: SessionQuery) -> CatalogRead<'_, (Vec<SessionRow>, Vec<ShortId>, u64)> {
        self.db.read(move |conn| {
            let reading = conn.unchecked_transaction()?;
            let (rows, total) = select_page(&reading, &listing)?;
            let ids: Vec<Uuid> = rows.iter().map(|row| row.header.id).collect();
            Ok((rows, select_short_ids(&reading, &ids)?, total))
        })
    }

    fn nth(&self, listing: SessionQuery) -> CatalogRead<'_, Option<SessionRow>> {
        let listing = SessionQuery { limit: 1, ..listing };
        self.db.read(move |conn| Ok(read_page(conn, &listing, u64::MAX)?.pop()))
    }

    fn nth_newest(&self, conversation: ConversationKey, n: u64) -> CatalogRead<'_, Option<SessionRow>> {
        self.db.read(move |conn| select_nth_newest(conn, conversation, n))
    }

    fn newest_and_names(
        &self,
        conversation: ConversationKey,
        base: String,
    ) -> CatalogRead<'_, (Option<SessionRow>, Vec<String>)> {
        self.db.read(move |conn| {
            let newest = select_nth_newest(conn, conversation, 0)?;
            Ok((newest, select_names_with_base(conn, conversation.agent, &base)?))
        })
    }

    fn newest_of_each(&self, agents: Vec<Uuid>) -> CatalogRead<'_, Vec<Option<SessionRow>>> {
        self.db.read(move |conn| select_newest_of_each(conn, &agents))
    }

    fn newest_of_conversations(&self, conversations: Vec<ConversationKey>) -> CatalogRead<'_, Vec<Option<SessionRow>>> {
        let newest = |conn: &Connection, conversation: &ConversationKey| select_nth_newest(conn, *conversation, 0);
        self.db.read(move |conn| conversations.iter().map(|conversation| newest(conn, conversation)).collect())
    }

    fn conversations_named(&self, agent: Uuid, name: String) -> CatalogRead<'_, Vec<Uuid>> {
        self.db.read(move |conn| select_conversations_named(conn, agent, &name))
    }

    fn names_with_base(&self, agent: Uuid, base: String) -> CatalogRead<'_, Vec<String>> {
        self.db.read(move |conn| select_names_with_base(conn, agent, &base))
    }

    fn list_named(&self, agent: Option<Uuid>, session_id: String) -> CatalogRead<'_, Vec<SessionRow>> {
        self.db.read(move |conn| session_names::list_named(conn, agent, session_id))
    }

    fn list_with_prefix(&self, agent: Option<Uuid>, prefix: String) -> CatalogRead<'_, Vec<SessionRow>> {
        self.db.read(move |conn| session_names::list_with_prefix(conn, agent, prefix))
    }

    fn list_with_slug(&self, agents: Vec<Uuid>, slug: String) -> CatalogRead<'_, Vec<SessionRow>> {
        self.db.read(move |conn| session_names::list_with_slug(conn, &agents, &slug))
    }

    fn list_with_title_words(&self, agents: Vec<Uuid>, words: String) -> CatalogRead<'_, Vec<SessionRow>> {
        self.db.read(move |conn| session_names::list_with_title_words(conn, &agents, &words))
    }

    fn short_ids(&self, ids: Vec<Uuid>) -> CatalogRead<'_, Vec<String>> {
        self.db.read(move |conn| {
            // One transaction, because each single statement would lock and unlock the database.
            let short = select_short_ids(&*conn.unchecked_transaction()?, &ids)?;
            Ok(short.into_iter().map(|short| short.text).collect())
        })
    }

    fn lineage(&self, agents: Vec<Uuid>) -> CatalogRead<'_, Vec<LineageRow>> {
        self.db.read(move |conn| lineage::select_lineage(conn, &agents))
    }

    fn names(&self, ids: Vec<Uuid>) -> CatalogRead<'_, HashMap<Uuid, SessionName>> {
        self.db.read(move |conn| lineage::select_names(conn, &ids))
    }

    fn names_at(&self, moments: Vec<(Uuid, Timestamp)>) -> CatalogRead<'_, Vec<Option<String>>> {
        self.db.read(move |conn| lineage::select_names_at(conn, &moments))
    }

    fn list_of_source(&self, program: String, conversation: String) -> CatalogRead<'_, Vec<SessionRow>> {
        self.db.read(move |conn| session_sources::list_of_source(conn, &program, &conversation))
    }

    fn list_without_source(&self, started_at: Timestamp) -> CatalogRead<'_, Vec<SessionRow>> {
        self.db.read(move |conn| session_sources::list_without_source(conn, started_at))
    }

    fn list_without_source_by_slug(&self, slug: String) -> CatalogRead<'_, Vec<SessionRow>> {
        self.db.read(move |conn| session_sources::list_without_source_by_slug(conn, &slug))
    }

    fn source_programs(&self) -> CatalogRead<'_, Vec<String>> {
        self.db.read(session_sources::list_programs)
    }

    fn identities_of_agent(&self, agent: Uuid) -> CatalogRead<'_, Vec<(String, String)>> {
        self.db.read(move |conn| session_sources::identities_of_agent(conn, agent))
    }

    fn count_by_program(&self) -> CatalogRead<'_, HashMap<String, (u64, u64)>> {
        self.db.read(session_sources::count_by_program)
    }

    fn ids_with_source(&self) -> CatalogRead<'_, HashSet<Uuid>> {
        self.db.read(session_sources::ids_with_source)
    }

    fn ids_of_project(&self, project: ProjectFilter) -> CatalogRead<'_, Vec<Uuid>> {
        self.db.read(move |conn| session_sources::ids_of_project(conn, &project))
    }

    fn ids_of_agent(&self, agent: Uuid) -> CatalogRead<'_, Vec<Uuid>> {
        self.db.read(move |conn| {
            let mut statement = conn.prepare_cached("SELECT id FROM sessions WHERE agent_id = ?1")?;
            let ids = statement.query_map([agent.as_bytes()], |row| Ok(Uuid::from_bytes(row.get(0)?)))?;
            Ok(ids.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn file_stamps(&self, agent: Uuid) -> CatalogRead<'_, Vec<(String, String)>> {
        self.db.read(move |conn| {
            let mut statement =
                conn.prepare_cached("SELECT session_id, file_stamp FROM sessions WHERE agent_id = ?1")?;
            let rows = statement.query_map([agent.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn named_bodies(&self, _keys: Vec<String>) -> CatalogRead<'_, HashSet<String>> {
        Box::pin(async { Ok(HashSet::new()) })
    }

    fn deleted_since(&self, _since: Timestamp) -> CatalogRead<'_, Vec<DeletedSession>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn body_keys(&self, _after: Option<String>, _limit: u64) -> CatalogRead<'_, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn corrupt_names(&self, agent: Uuid) -> CatalogRead<'_, Vec<String>> {
        self.db.read(move |conn| {
            let mut statement =
                conn.prepare_cached("SELECT session_id FROM sessions WHERE agent_id = ?1 AND corrupt IS NOT NULL")?;
            let names = statement.query_map([agent.as_bytes()], |row| row.get(0))?;
            Ok(names.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn stamps_after(&self, after: i64, limit: u64) -> CatalogRead<'_, Vec<SessionStamp>> {
        self.db.read(move |conn| session_changes::stamps_after(conn, after, limit))
    }

    fn changes(&self) -> Arc<SessionChanges> {
        self.changes.clone()
    }

    fn commit_changes(&self) -> CatalogWrite<()> {
        self.db.write(|_| Ok(()))
    }

    fn list_unused_since(&self, before: Timestamp) -> CatalogRead<'_, Vec<UnusedSession>> {
        Box::pin(async move {
            self.db.writer.submit_without_savepoint(|_| Ok(())).await?;
            let mut found = Vec::new();
            let mut from = Some(0);
            // In chunks, so that other reads are not delayed.
            while let Some(after) = from {
                let read = move |conn: &Connection| stale_sessions::read_chunk(conn, before, after);
                let (piece, next) = self.db.read(read).await?;
                found.extend(piece);
                from = next;
            }
            Ok(found)
        })
    }

    fn get_unused_since(&self, id: Uuid, before: Timestamp) -> CatalogWrite<Option<SessionRow>> {
        Box::pin(self.db.writer.submit_without_savepoint(move |conn| stale_sessions::select_unused(conn, id, before)))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use chorus_catalog::{PendingSummary, SessionPlacement};

    use super::*;
    use crate::catalog::SqliteCatalog;

    pub(in crate::catalog) fn row_with_stamp(stamp: &str) -> SessionRow {
        let header = serde_json::json!({
            "schema": 2, "id": "1f3a9c02-1111-4000-8000-000000000000", "session_id": "s",
            "agent_id": "00000000-0000-4000-8000-000000000001", "agent_name": "a", "description": null, "summary": null,
            "summary_source": "none", "saved_at": "2026-01-02T03:04:05Z", "started_at": "2026-01-02T03:04:05Z",
            "trigger": "manual_save", "model": null, "message_count": 1, "query_count": 1, "token_estimate": 1,
            "restoration_tokens": {"input": 0, "output": 0}, "parent_id": null, "workspace_commit": null, "tags": [],
            "working_set": {}
        });
        SessionRow {
            header: serde_json::from_value(header).unwrap(),
            sha256: "x".into(),
            file_stamp: stamp.into(),
            corrupt: None,
            last_used_at: Timestamp::UNIX_EPOCH,
            place: 0,
            body: None,
        }
    }

    #[tokio::test]
    async fn a_file_that_is_found_while_its_save_inserts_it_keeps_the_summary_that_the_save_wants() {
        let dir = tempfile::tempdir().unwrap();
        let on_fatal: crate::OnFatal = Arc::new(|_| ());
        let redactor = Arc::new(chorus_redact::Redactor::new(|| [0; 32]));
        let (catalog, _) =
            SqliteCatalog::open(&dir.path().join("chorus.db"), &on_fatal, Timestamp::UNIX_EPOCH, redactor).unwrap();
        let (id, tables) = (row_with_stamp("1").header.id, &catalog.tables);
        let new = NewSession::new(row_with_stamp("1"), SessionPlacement::Last);
        let summary = Some(PendingSummary { described: true });
        tables.sessions.insert(NewSession { summary, ..new }).await.unwrap();
        tables.sessions.upsert(row_with_stamp("1")).await.unwrap();
        assert!(tables.summary_queue.get(id).await.unwrap().is_some());
        // The file was changed by hand since: what it holds now is another text.
        tables.sessions.upsert(row_with_stamp("2")).await.unwrap();
        assert_eq!(tables.sessions.get(id).await.unwrap().unwrap().file_stamp, "2");
        catalog.close().await.unwrap();
    }
}
