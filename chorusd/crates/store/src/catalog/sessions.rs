//! Rows of sessions.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::{ErrorKind, SessionHeader};
use chorus_session::conversation::ConversationKey;
use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::CatalogDb;
use super::imported_usage::{self, ImportedUsage};
use super::session_changes::SessionChanges;
use super::session_listing::{read_page, select_page};
use super::short_ids::{ShortId, select_short_ids};
use super::summary_queue::{self, PendingSummary};
use crate::sqlite::{StoreError, StoreResult};

/// A row of the table `sessions`.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    pub header: SessionHeader,
    /// Hash of the messages, see [`chorus_session::MessageHash`].
    pub sha256: String,
    /// Stamp of the file when it was read or written; a different one means that the file has changed.
    pub file_stamp: String,
    /// Reason why the file cannot be read, if it cannot.
    pub corrupt: Option<String>,
    pub last_used_at: Timestamp,
    /// Position in the order of sessions: nanoseconds since 1970 by [`to_nanos`], or more if the clock was set back.
    pub place: i64,
}

impl SessionRow {
    /// Returns true if messages with this hash, of a file with `header`, are those that were saved. An import that was
    /// interrupted may have added some which only the file knows of.
    #[must_use]
    pub fn has_saved(&self, header: &SessionHeader, sha256: &str) -> bool {
        self.sha256 == sha256 || header.source.as_ref().is_some_and(|source| source.messages_sha256 == sha256)
    }
}

/// Where a new session is placed in the order of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionPlacement {
    /// At the `place` of its row.
    AtOwnPlace,
    /// After all others, whatever the clock says.
    Last,
}

/// Query for a page of sessions, newest first.
#[derive(Debug, Clone, Default)]
pub struct SessionQuery {
    /// `None` means all agents.
    pub agent: Option<Uuid>,
    /// Agents whose sessions are listed as well, if `agent` is given.
    pub also: Vec<Uuid>,
    /// Of `agent`, only the sessions of this conversation.
    pub conversation: Option<ConversationKey>,
    /// Conversations of `agent` whose sessions are left out.
    pub hidden: Vec<Uuid>,
    /// Only imported conversations of this program.
    pub source: Option<String>,
    /// Only sessions of this project.
    pub project: Option<ProjectFilter>,
    /// Only conversations since then: by the time of the save, or of an imported one by its end.
    pub since: Option<Timestamp>,
    pub tag: Option<String>,
    /// Words that the title, the name, the tags or the conversation contain, each of them, in any case.
    pub words: Vec<String>,
    /// The names and titles that conversations have now, in lowercase letters, by id; those without any of `words` may be
    /// missing.
    pub conversation_texts: HashMap<Uuid, String>,
    pub offset: u64,
    pub limit: u64,
}

/// Selects sessions by their project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectFilter {
    /// The absolute path of a directory: imported conversations that were held in it or below it.
    pub directory: Option<String>,
    /// The last part of such a directory.
    pub name: Option<String>,
    /// Agents of the project: all their sessions.
    pub agents: Vec<Uuid>,
}

/// Returns the position of a session in the order of sessions, unless it has to come after all others.
#[must_use]
pub fn place_of(header: &SessionHeader) -> i64 {
    to_nanos(header.held_at())
}

pub(super) const COLUMNS: &str = "header, sha256, file_stamp, corrupt, last_used_at, place";

pub(super) fn read_session(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let header = row.get_ref(0)?.as_str()?;
    Ok(SessionRow {
        header: serde_json::from_str(header)
            .map_err(|e| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(e)))?,
        sha256: row.get(1)?,
        file_stamp: row.get(2)?,
        corrupt: row.get(3)?,
        last_used_at: from_nanos(row.get(4)?),
        place: row.get(5)?,
    })
}

/// The table of sessions, which indexes their files.
#[derive(Debug, Clone)]
pub struct SessionTable {
    pub(super) db: CatalogDb,
    pub(super) changes: Arc<SessionChanges>,
}

impl SessionTable {
    /// Inserts a session; a name that the agent already has is a conflict. With `wanted`, also queues it for a summary,
    /// in the same commit. Returns its short id.
    pub fn insert(
        &self,
        row: SessionRow,
        order: SessionPlacement,
        wanted: Option<PendingSummary>,
    ) -> impl Future<Output = Result<String>> + Send + use<> {
        self.db.writer.submit(move |conn| insert_saved(conn, row, order, wanted))
    }

    /// As [`SessionTable::insert`], for an imported conversation with its usage, in the same commit.
    pub fn insert_imported(
        &self,
        row: SessionRow,
        order: SessionPlacement,
        usage: Arc<ImportedUsage>,
    ) -> impl Future<Output = Result<String>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            let id = row.header.id;
            let short_id = insert_saved(conn, row, order, None)?;
            imported_usage::record(conn, id, &usage)?;
            Ok(short_id)
        })
    }

    /// As [`SessionTable::insert`], for one of many sessions: the row may wait a moment for others, to share their
    /// commit.
    pub fn insert_deferred(
        &self,
        row: SessionRow,
        order: SessionPlacement,
        wanted: Option<PendingSummary>,
    ) -> impl Future<Output = Result<String>> + Send + use<> {
        self.db.writer.submit_deferred(move |conn| insert_saved(conn, row, order, wanted))
    }

    /// Inserts a session whose file was found; replaces the rows with its id or with its name within the agent. Does
    /// nothing if there is a row for this very file: a save has inserted it meanwhile, and replacing it would lose the
    /// summary that is requested with it.
    pub fn upsert(&self, row: SessionRow) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            let known = conn
                .prepare_cached(
                    "SELECT 1 FROM sessions
                     WHERE id = ?1 AND agent_id = ?2 AND session_id = ?3 AND sha256 = ?4 AND file_stamp = ?5 AND corrupt IS ?6",
                )?
                .exists(params![
                    row.header.id.as_bytes(),
                    row.header.agent_id.as_bytes(),
                    row.header.session_id,
                    row.sha256,
                    row.file_stamp,
                    row.corrupt
                ])?;
            if known {
                return Ok(());
            }
            conn.prepare_cached("DELETE FROM sessions WHERE id = ?1 OR (agent_id = ?2 AND session_id = ?3)")?
                .execute(params![row.header.id.as_bytes(), row.header.agent_id.as_bytes(), row.header.session_id])?;
            insert(conn, &row)
        })
    }

    /// Deletes the row that [`SessionTable::insert`] inserted for this session, but no other session's row with the
    /// same id.
    pub fn undo_insert(&self, session: SessionHeader) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            delete_exact(conn, &session)?;
            imported_usage::delete(conn, session.id)
        })
    }

    /// Deletes a session's row.
    pub fn delete(&self, id: Uuid) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            conn.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([id.as_bytes()])?;
            Ok(())
        })
    }

    /// Sets the time at which a session was used last.
    pub fn touch(&self, id: Uuid, at: Timestamp) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            conn.prepare_cached("UPDATE sessions SET last_used_at = ?2 WHERE id = ?1")?
                .execute(params![id.as_bytes(), to_nanos(at)])?;
            Ok(())
        })
    }

    /// Returns the session with this id.
    pub async fn get(&self, id: Uuid) -> Result<Option<SessionRow>> {
        self.db
            .reader
            .submit(move |conn| {
                Ok(conn
                    .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1"))?
                    .query_row([id.as_bytes()], read_session)
                    .optional()?)
            })
            .await
    }

    /// Returns a page of sessions, and the total number that match.
    pub async fn list(&self, listing: SessionQuery) -> Result<(Vec<SessionRow>, u64)> {
        self.db
            .reader
            .submit(move |conn| {
                let reading = conn.unchecked_transaction()?;
                select_page(&reading, &listing)
            })
            .await
    }

    /// Returns the session at the offset of a query, without counting those that match.
    pub async fn nth(&self, listing: SessionQuery) -> Result<Option<SessionRow>> {
        let listing = SessionQuery { limit: 1, ..listing };
        self.db.reader.submit(move |conn| Ok(read_page(conn, &listing, u64::MAX)?.pop())).await
    }

    /// As [`SessionTable::list`], with the short id of each session, in one transaction.
    pub async fn list_with_short_ids(&self, listing: SessionQuery) -> Result<(Vec<SessionRow>, Vec<ShortId>, u64)> {
        self.db
            .reader
            .submit(move |conn| {
                let reading = conn.unchecked_transaction()?;
                let (rows, total) = select_page(&reading, &listing)?;
                let ids: Vec<Uuid> = rows.iter().map(|row| row.header.id).collect();
                Ok((rows, select_short_ids(&reading, &ids)?, total))
            })
            .await
    }

    /// Returns the `n`th newest session of a conversation, counted from 0.
    pub async fn nth_newest(&self, conversation: ConversationKey, n: u64) -> Result<Option<SessionRow>> {
        self.db.reader.submit(move |conn| select_nth_newest(conn, conversation, n)).await
    }

    /// Returns the newest session of a conversation, and its agent's session names that are `base` or begin with
    /// `base-`: a save needs both.
    pub async fn newest_and_names(
        &self,
        conversation: ConversationKey,
        base: String,
    ) -> Result<(Option<SessionRow>, Vec<String>)> {
        self.db
            .reader
            .submit(move |conn| {
                let newest = select_nth_newest(conn, conversation, 0)?;
                Ok((newest, select_names_with_base(conn, conversation.agent, &base)?))
            })
            .await
    }

    /// Returns the newest session of each agent, in the order of `agents`; one index seek per agent.
    pub async fn newest_of_each(&self, agents: Vec<Uuid>) -> Result<Vec<Option<SessionRow>>> {
        self.db
            .reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM sessions WHERE agent_id = ?1 ORDER BY place DESC, rowid DESC LIMIT 1"
                ))?;
                agents
                    .iter()
                    .map(|agent| Ok(statement.query_row([agent.as_bytes()], read_session).optional()?))
                    .collect()
            })
            .await
    }

    /// Returns the newest session of each conversation, in the order of `conversations`; one index seek each.
    pub async fn newest_of_conversations(
        &self,
        conversations: Vec<ConversationKey>,
    ) -> Result<Vec<Option<SessionRow>>> {
        let newest = |conn: &Connection, conversation: &ConversationKey| select_nth_newest(conn, *conversation, 0);
        self.db
            .reader
            .submit(move |conn| conversations.iter().map(|conversation| newest(conn, conversation)).collect())
            .await
    }

    /// Returns the ids of the conversations, other than `main`, under whose name `name` the agent has sessions.
    pub async fn conversations_named(&self, agent: Uuid, name: String) -> Result<Vec<Uuid>> {
        self.db
            .reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached(
                    "SELECT DISTINCT conversation_id FROM sessions WHERE agent_id = ?1 AND conversation_id IS NOT NULL
                         AND json_extract(header, '$.conversation.name') = ?2",
                )?;
                let id = |row: &Row<'_>| row.get(0).map(Uuid::from_bytes);
                let ids = statement.query_map(params![agent.as_bytes(), name], id)?;
                Ok(ids.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Returns the agent's session names that are `base` or begin with `base-`.
    pub async fn names_with_base(&self, agent: Uuid, base: String) -> Result<Vec<String>> {
        self.db.reader.submit(move |conn| select_names_with_base(conn, agent, &base)).await
    }

    /// Returns the name and file stamp of every session of an agent.
    pub async fn file_stamps(&self, agent: Uuid) -> Result<Vec<(String, String)>> {
        self.db
            .reader
            .submit(move |conn| {
                let mut statement =
                    conn.prepare_cached("SELECT session_id, file_stamp FROM sessions WHERE agent_id = ?1")?;
                let rows = statement
                    .query_map([agent.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect::<rusqlite::Result<_>>()?;
                Ok(rows)
            })
            .await
    }

    /// Returns the shortest prefix of each id that no other id shares: 8 hex digits, or more where ids are similar;
    /// hyphens are not counted.
    pub async fn short_ids(&self, ids: Vec<Uuid>) -> Result<Vec<String>> {
        // One transaction, because each single statement would lock and unlock the database.
        let short = self.db.reader.submit(move |conn| select_short_ids(&*conn.unchecked_transaction()?, &ids)).await?;
        Ok(short.into_iter().map(|short| short.text).collect())
    }
}

fn insert_saved(
    conn: &Connection,
    mut row: SessionRow,
    order: SessionPlacement,
    wanted: Option<PendingSummary>,
) -> StoreResult<String> {
    // A scan or a rebuild may have found the file first and inserted a row for this session.
    delete_exact(conn, &row.header)?;
    if order == SessionPlacement::Last {
        row.place = row.place.max(next_place(conn)?);
    }
    insert(conn, &row)?;
    if let Some(wanted) = wanted {
        summary_queue::enqueue(conn, row.header.id, wanted)?;
    }
    Ok(select_short_ids(conn, &[row.header.id])?.pop().map(|short| short.text).unwrap_or_default())
}

fn select_nth_newest(conn: &Connection, conversation: ConversationKey, n: u64) -> StoreResult<Option<SessionRow>> {
    // Greater numbers do not fit into SQLite, and no table has so many rows.
    let Ok(n) = i64::try_from(n) else { return Ok(None) };
    Ok(conn
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM sessions WHERE agent_id = ?1 AND conversation_id IS ?2
             ORDER BY place DESC, rowid DESC LIMIT 1 OFFSET ?3"
        ))?
        .query_row(
            params![conversation.agent.as_bytes(), conversation.stored_id().map(Uuid::into_bytes), n],
            read_session,
        )
        .optional()?)
}

fn select_names_with_base(conn: &Connection, agent: Uuid, base: &str) -> StoreResult<Vec<String>> {
    let mut statement = conn.prepare_cached(
        "SELECT session_id FROM sessions
         WHERE agent_id = ?1 AND (session_id = ?2 OR session_id BETWEEN ?2 || '-' AND ?2 || '.')",
    )?;
    Ok(statement.query_map(params![agent.as_bytes(), base], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

fn delete_exact(conn: &Connection, session: &SessionHeader) -> StoreResult<()> {
    conn.prepare_cached("DELETE FROM sessions WHERE id = ?1 AND agent_id = ?2 AND session_id = ?3")?
        .execute(params![session.id.as_bytes(), session.agent_id.as_bytes(), session.session_id])?;
    Ok(())
}

/// The first place after all sessions.
fn next_place(conn: &Connection) -> StoreResult<i64> {
    let last: Option<i64> = conn.prepare_cached("SELECT max(place) FROM sessions")?.query_row([], |row| row.get(0))?;
    Ok(last.map_or(i64::MIN, |last| last.saturating_add(1)))
}

pub(super) fn insert(conn: &Connection, row: &SessionRow) -> StoreResult<()> {
    let header = serde_json::to_string(&row.header).map_err(|e| Error::internal(e.to_string()))?;
    let id = row.header.id;
    conn.prepare_cached(
        "INSERT INTO sessions (id, agent_id, session_id, saved_at, header, sha256, file_stamp, corrupt, last_used_at,
             place, conversation_id, source_program, source_conversation, project)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?
    .execute(params![
        id.as_bytes(),
        row.header.agent_id.as_bytes(),
        row.header.session_id,
        to_nanos(row.header.saved_at),
        header,
        row.sha256,
        row.file_stamp,
        row.corrupt,
        to_nanos(row.last_used_at),
        row.place,
        row.header.conversation.as_ref().map(|conversation| conversation.id.into_bytes()),
        row.header.source.as_ref().map(|source| &source.program),
        row.header.source.as_ref().map(|source| &source.conversation),
        row.header.source.as_ref().and_then(|source| source.project.as_ref()),
    ])
    .map_err(|e| match e.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => StoreError::from(Error::new(
            ErrorKind::AlreadyExists,
            format!("this agent already has a session {}", row.header.session_id),
        )),
        _ => e.into(),
    })?;
    let mut tag = conn.prepare_cached("INSERT OR IGNORE INTO session_tags (id, tag) VALUES (?1, ?2)")?;
    for name in &row.header.tags {
        tag.execute(params![id.as_bytes(), name])?;
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

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
        }
    }

    #[tokio::test]
    async fn a_file_that_is_found_while_its_save_inserts_it_keeps_the_summary_that_the_save_wants() {
        let dir = tempfile::tempdir().unwrap();
        let on_fatal: crate::OnFatal = Arc::new(|_| ());
        let redactor = Arc::new(chorus_redact::Redactor::new(|| [0; 32]));
        let (catalog, _) =
            super::super::Catalog::open(&dir.path().join("chorus.db"), &on_fatal, Timestamp::UNIX_EPOCH, redactor)
                .unwrap();
        let id = row_with_stamp("1").header.id;
        let wanted = Some(PendingSummary { described: true });
        catalog.sessions.insert(row_with_stamp("1"), SessionPlacement::Last, wanted).await.unwrap();
        catalog.sessions.upsert(row_with_stamp("1")).await.unwrap();
        assert!(catalog.summary_queue.get(id).await.unwrap().is_some());
        // The file was changed by hand since: what it holds now is another text.
        catalog.sessions.upsert(row_with_stamp("2")).await.unwrap();
        assert_eq!(catalog.sessions.get(id).await.unwrap().unwrap().file_stamp, "2");
        catalog.close().await.unwrap();
    }
}
