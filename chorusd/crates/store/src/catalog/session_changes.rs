//! Tells the search index which sessions have changed, whatever statement changed them.

use std::collections::HashSet;
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_base::sync::Mutex;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::sync::Notify;
use uuid::Uuid;

use super::sessions::{COLUMNS, SessionRow, SessionTable, read_session};
use crate::sqlite::StoreResult;

/// Sessions and agents whose rows were inserted, updated or deleted since they were last taken.
#[derive(Debug, Default)]
pub struct SessionChanges {
    changed: Mutex<ChangedRows>,
    notify: Notify,
}

/// Ids of changed rows.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ChangedRows {
    pub sessions: HashSet<Uuid>,
    /// Agents that were destroyed, moved or came back, which concerns all of their sessions.
    pub agents: HashSet<Uuid>,
}

impl ChangedRows {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.agents.is_empty()
    }
}

impl SessionChanges {
    /// Returns once something has changed since the last [`take`](Self::take). Safe to cancel.
    pub async fn wait(&self) {
        loop {
            let notified = self.notify.notified();
            if !self.changed.lock().is_empty() {
                return;
            }
            notified.await;
        }
    }

    /// Returns how many sessions and agents have changed since they were last taken.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let changed = self.changed.lock();
        (changed.sessions.len() as u64, changed.agents.len() as u64)
    }

    /// Takes what has changed. A row may not be committed yet: [`SessionTable::commit_changes`](super::SessionTable::commit_changes)
    /// waits for that.
    #[must_use]
    pub fn take(&self) -> ChangedRows {
        std::mem::take(&mut self.changed.lock())
    }

    fn note(&self, change: impl FnOnce(&mut ChangedRows)) {
        change(&mut self.changed.lock());
        self.notify.notify_one();
    }
}

/// Identifies the file that a row of a session was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStamp {
    /// Position in the table, for the next page.
    pub rowid: i64,
    pub id: Uuid,
    /// Hash of the messages.
    pub sha256: String,
    pub file_stamp: String,
}

impl SessionTable {
    /// Returns what the search index has to look at.
    #[must_use]
    pub fn changes(&self) -> Arc<SessionChanges> {
        self.changes.clone()
    }

    /// Waits until the changes that were taken so far are committed, or undone.
    pub async fn commit_changes(&self) -> Result<()> {
        self.db.writer.submit(|_| Ok(())).await
    }

    /// Returns a page of all sessions behind the row `after`, in the order of the table.
    pub async fn stamps_after(&self, after: i64, limit: u64) -> Result<Vec<SessionStamp>> {
        self.db
            .reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached(
                    "SELECT rowid, id, sha256, file_stamp FROM sessions WHERE rowid > ?1 ORDER BY rowid LIMIT ?2",
                )?;
                let stamps = statement.query_map(params![after, limit], |row| {
                    Ok(SessionStamp {
                        rowid: row.get(0)?,
                        id: Uuid::from_bytes(row.get(1)?),
                        sha256: row.get(2)?,
                        file_stamp: row.get(3)?,
                    })
                })?;
                Ok(stamps.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Returns the ids of an agent's sessions.
    pub async fn ids_of_agent(&self, agent: Uuid) -> Result<Vec<Uuid>> {
        self.db
            .reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached("SELECT id FROM sessions WHERE agent_id = ?1")?;
                let ids = statement.query_map([agent.as_bytes()], |row| Ok(Uuid::from_bytes(row.get(0)?)))?;
                Ok(ids.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Returns the sessions with these ids, as far as they exist.
    pub async fn get_all(&self, ids: Vec<Uuid>) -> Result<Vec<SessionRow>> {
        self.db
            .reader
            .submit(move |conn| {
                let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE id = ?1"))?;
                let mut rows = Vec::with_capacity(ids.len());
                for id in ids {
                    rows.extend(statement.query_row([id.as_bytes()], read_session).optional()?);
                }
                Ok(rows)
            })
            .await
    }
}

/// Makes `conn`, which writes the catalog, note the rows that it changes. The triggers are temporary: they belong to the
/// connection, not to the file.
pub(super) fn install(conn: &Connection, changes: &Arc<SessionChanges>) -> StoreResult<()> {
    let define = |name: &str, note: fn(&mut ChangedRows, Uuid)| {
        let changes = changes.clone();
        conn.create_scalar_function(name, 1, FunctionFlags::SQLITE_UTF8, move |call| {
            let id = Uuid::from_bytes(call.get(0)?);
            changes.note(|changed| note(changed, id));
            Ok(None::<i64>)
        })
    };
    define("note_session", |changed, id| _ = changed.sessions.insert(id))?;
    define("note_agent", |changed, id| _ = changed.agents.insert(id))?;
    conn.execute_batch(
        "
        CREATE TEMP TRIGGER note_inserted_session AFTER INSERT ON main.sessions BEGIN SELECT note_session(new.id); END;
        CREATE TEMP TRIGGER note_deleted_session AFTER DELETE ON main.sessions BEGIN SELECT note_session(old.id); END;
        CREATE TEMP TRIGGER note_updated_session
            AFTER UPDATE OF agent_id, session_id, header, sha256, file_stamp, corrupt ON main.sessions
            BEGIN SELECT note_session(new.id); END;
        CREATE TEMP TRIGGER note_inserted_agent AFTER INSERT ON main.agents BEGIN SELECT note_agent(new.id); END;
        CREATE TEMP TRIGGER note_updated_agent AFTER UPDATE OF status, dir, name ON main.agents
            WHEN (old.status, old.dir, old.name) IS NOT (new.status, new.dir, new.name)
            BEGIN SELECT note_agent(new.id); END;
        CREATE TEMP TRIGGER note_deleted_agent AFTER DELETE ON main.agents BEGIN SELECT note_agent(old.id); END;
        ",
    )?;
    Ok(())
}
