//! Memories of agents: their own, and those that the agents of a project share.

use chorus_base::error::{Error, Result};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::ErrorKind;
use chorus_proto::methods::memory::MemorySource;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::CatalogDb;
use crate::sqlite::StoreResult;

/// Limit of a memory's text, in bytes.
pub const MAX_TEXT_BYTES: usize = 2 << 10;
/// Limit of a path, in bytes.
const MAX_PATH_BYTES: usize = 512;
/// Limit of entries of an agent's own memory, and of a project's.
const MAX_ENTRIES: u64 = 1000;

/// A memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRow {
    pub id: Uuid,
    /// The agent that the memory belongs to, or that wrote the project's memory.
    pub agent: Uuid,
    /// Name of the agent at that time.
    pub agent_name: String,
    /// The project whose agents share the memory; `None` if it is the agent's own.
    pub project: Option<String>,
    pub text: String,
    /// Path of the file in the workspace that it is about.
    pub path: Option<String>,
    pub at: Timestamp,
    /// The user on whose behalf it was stored.
    pub user: String,
    pub source: MemorySource,
    /// Id of the message with the tool call that stored it.
    pub message: Option<String>,
}

/// The memories that an agent sees: its own, and those of its project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryScope {
    pub agent: Uuid,
    pub project: Option<String>,
}

/// Outcome of storing a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RememberOutcome {
    /// Stored under this id.
    New(Uuid),
    /// This entry has the same text already.
    Known(Uuid),
}

/// Validates a text and trims it.
pub fn validate_text(given: &str) -> Result<String, String> {
    let text = given.trim();
    if text.is_empty() {
        return Err("nothing to remember: the text is empty".into());
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!("the text has {} bytes (at most {MAX_TEXT_BYTES})", text.len()));
    }
    if text.contains('\0') {
        return Err("the text contains a NUL character".into());
    }
    Ok(text.to_owned())
}

/// Validates and normalises a path below the workspace; an empty one is `None`.
pub fn validate_path(given: Option<&str>) -> Result<Option<String>, String> {
    let Some(given) = given.map(str::trim).filter(|given| !given.is_empty()) else { return Ok(None) };
    if given.len() > MAX_PATH_BYTES || given.chars().any(char::is_control) {
        return Err(format!("the path contains control characters, or has more than {MAX_PATH_BYTES} bytes"));
    }
    let parts: Vec<&str> = given.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if given.starts_with('/') || parts.is_empty() || parts.contains(&"..") {
        return Err("the path must be inside the workspace, for example src/main.rs".into());
    }
    Ok(Some(parts.join("/")))
}

const COLUMNS: &str = "uid, agent_id, agent_name, project, text, path, created_at, user, source, message_id";
/// Condition for the rows of an agent and of its project.
const VISIBLE_ROWS: &str = "(agent_id = ?1 AND project IS NULL) OR project = ?2";
/// Memories written by people first, the newest first within each kind.
const ORDER: &str = "source = 'hand' DESC, id DESC";

fn read_memory(row: &Row<'_>) -> rusqlite::Result<MemoryRow> {
    Ok(MemoryRow {
        id: Uuid::from_bytes(row.get(0)?),
        agent: Uuid::from_bytes(row.get(1)?),
        agent_name: row.get(2)?,
        project: row.get(3)?,
        text: row.get(4)?,
        path: row.get(5)?,
        at: from_nanos(row.get(6)?),
        user: row.get(7)?,
        source: if row.get_ref(8)?.as_str()? == "hand" { MemorySource::Hand } else { MemorySource::Tool },
        message: row.get(9)?,
    })
}

fn select_visible(conn: &Connection, whose: &MemoryScope, most: i64) -> StoreResult<Vec<MemoryRow>> {
    let query = format!("SELECT {COLUMNS} FROM memory WHERE {VISIBLE_ROWS} ORDER BY {ORDER} LIMIT ?3");
    let mut statement = conn.prepare_cached(&query)?;
    let rows = statement.query_map(params![whose.agent.as_bytes(), whose.project, most], read_memory)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The table of memories.
#[derive(Debug, Clone)]
pub struct MemoryTable {
    pub(super) db: CatalogDb,
}

impl MemoryTable {
    /// Stores a memory, unless an equal one exists or the limit is reached. The future completes once it is on the
    /// disk. If the row's id is in use, the memory gets a new one.
    pub fn insert(&self, row: MemoryRow) -> impl Future<Output = Result<RememberOutcome>> + Send + use<> {
        self.db.writer.submit(move |conn| insert(conn, row))
    }

    /// Returns all memories that an agent sees, in the order in which they are shown.
    pub async fn list_visible(&self, whose: MemoryScope) -> Result<Vec<MemoryRow>> {
        self.db.reader.submit(move |conn| select_visible(conn, &whose, -1)).await
    }

    /// Returns the first `most` memories and the total number for each of `whose`, in that order.
    pub async fn first_visible(&self, whose: Vec<MemoryScope>, most: u32) -> Result<Vec<(Vec<MemoryRow>, u64)>> {
        self.db
            .reader
            .submit(move |conn| {
                let reading = conn.unchecked_transaction()?;
                let count = format!("SELECT count(*) FROM memory WHERE {VISIBLE_ROWS}");
                whose
                    .iter()
                    .map(|whose| {
                        let rows = select_visible(&reading, whose, most.into())?;
                        let total = reading
                            .prepare_cached(&count)?
                            .query_row(params![whose.agent.as_bytes(), whose.project], |row| row.get(0))?;
                        Ok((rows, total))
                    })
                    .collect()
            })
            .await
    }

    /// Returns the memories that were written by or for an agent, oldest first: its own, and those it shares.
    pub async fn list_written_by(&self, agent: Uuid) -> Result<Vec<MemoryRow>> {
        self.db
            .reader
            .submit(move |conn| {
                let query = format!("SELECT {COLUMNS} FROM memory WHERE agent_id = ?1 ORDER BY id");
                let rows =
                    conn.prepare_cached(&query)?.query_map([agent.as_bytes()], read_memory)?.collect::<Result<_, _>>();
                Ok(rows?)
            })
            .await
    }

    /// Returns whether there is an entry with this id.
    pub async fn contains(&self, id: Uuid) -> Result<bool> {
        self.db
            .reader
            .submit(move |conn| {
                Ok(conn.prepare_cached("SELECT 1 FROM memory WHERE uid = ?1")?.exists([id.as_bytes()])?)
            })
            .await
    }

    /// Replaces the text of an entry, which counts as written by a person from then on.
    pub fn update_text(&self, id: Uuid, text: String) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            conn.prepare_cached("UPDATE memory SET text = ?2, source = 'hand' WHERE uid = ?1")?
                .execute(params![id.as_bytes(), text])?;
            Ok(())
        })
    }

    /// Deletes entries.
    pub fn delete(&self, ids: Vec<Uuid>) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            let mut statement = conn.prepare_cached("DELETE FROM memory WHERE uid = ?1")?;
            for id in ids {
                statement.execute([id.as_bytes()])?;
            }
            Ok(())
        })
    }

    /// Deletes the own memories of an agent; those it shared with its project stay.
    pub fn delete_own(&self, agent: Uuid) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            conn.execute("DELETE FROM memory WHERE agent_id = ?1 AND project IS NULL", [agent.as_bytes()])?;
            Ok(())
        })
    }
}

pub(super) fn insert(conn: &Connection, row: MemoryRow) -> StoreResult<RememberOutcome> {
    let scope = "((?1 IS NULL AND agent_id = ?2 AND project IS NULL) OR project = ?1)";
    let known = format!("SELECT uid FROM memory WHERE {scope} AND text = ?3 AND path IS ?4");
    let known = conn
        .prepare_cached(&known)?
        .query_row(params![row.project, row.agent.as_bytes(), row.text, row.path], |row| row.get(0))
        .optional()?;
    if let Some(known) = known {
        return Ok(RememberOutcome::Known(Uuid::from_bytes(known)));
    }
    let count = format!("SELECT count(*) FROM memory WHERE {scope}");
    let count: u64 =
        conn.prepare_cached(&count)?.query_row(params![row.project, row.agent.as_bytes()], |row| row.get(0))?;
    if count >= MAX_ENTRIES {
        let whose = row.project.map_or(row.agent_name, |project| format!("project {project}"));
        return Err(Error::new(
            ErrorKind::LimitReached,
            format!("{whose} already has {count} memory entries, which is the limit"),
        )
        .hint("remove entries: chorusctl memory remove ID")
        .into());
    }
    let taken = "SELECT 1 FROM memory WHERE uid = ?1";
    let taken = conn.prepare_cached(taken)?.exists([row.id.as_bytes()])?;
    let id = if taken { Uuid::new_v4() } else { row.id };
    conn.prepare_cached(&format!("INSERT INTO memory ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"))?
        .execute(params![
        id.as_bytes(),
        row.agent.as_bytes(),
        row.agent_name,
        row.project,
        row.text,
        row.path,
        to_nanos(row.at),
        row.user,
        row.source.as_str(),
        row.message
    ])?;
    Ok(RememberOutcome::New(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_workspace() {
        assert_eq!(validate_path(Some(" ./src//a b.rs/ ")).unwrap().as_deref(), Some("src/a b.rs"));
        assert_eq!(validate_path(Some(" ")).unwrap(), None);
        for bad in ["/etc/passwd", "../x", "a/../../b", ".", "a\nb", &"x".repeat(513)] {
            assert!(validate_path(Some(bad)).is_err(), "{bad:?}");
        }
    }
}
