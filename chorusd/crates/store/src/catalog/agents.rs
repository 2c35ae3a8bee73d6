//! Rows of agents.

use std::path::{Component, Path};

use chorus_base::error::Result;
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::AgentStatus;
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::CatalogDb;
use super::capture;
use super::memories::{self, MemoryRow, RememberOutcome};
use crate::sqlite::StoreResult;

/// A row of the table `agents`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRow {
    pub id: Uuid,
    pub name: String,
    pub status: AgentStatus,
    pub created_at: Timestamp,
    /// Directory of the agent, relative to the home, for example `agents/frontend`.
    pub dir: String,
    /// The last valid agent.json.
    pub config: String,
    /// Stamp of the file that `config` was read from; a different one means that the file has changed.
    pub stamp: String,
    /// Number of the agent's sessions.
    pub sessions: u64,
}

const COLUMNS: &str = "id, name, status, created_at, dir, config, stamp, sessions";

fn read_agent(row: &Row<'_>) -> rusqlite::Result<AgentRow> {
    Ok(AgentRow {
        id: Uuid::from_bytes(row.get(0)?),
        dir: confine_to_home(row.get(4)?, row.get_ref(1)?.as_str()?),
        name: row.get(1)?,
        status: if row.get_ref(2)?.as_str()? == "active" { AgentStatus::Active } else { AgentStatus::Destroyed },
        created_at: from_nanos(row.get(3)?),
        config: row.get(5)?,
        stamp: row.get(6)?,
        sessions: row.get(7)?,
    })
}

/// Returns `dir` if it is below `agents/` or `trash/` in the home, and else a directory derived from the name: somebody
/// may have edited the catalog by hand.
fn confine_to_home(dir: String, name: &str) -> String {
    let below = Path::new(&dir).components().all(|part| matches!(part, Component::Normal(_)));
    if below && ["agents/", "trash/"].iter().any(|folder| dir.starts_with(folder)) {
        return dir;
    }
    tracing::error!(agent = name, dir, "ignoring a directory outside the home in the catalog");
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    format!("agents/{}", name.chars().filter(plain).collect::<String>())
}

/// The table of agents.
#[derive(Debug, Clone)]
pub struct AgentTable {
    pub(super) db: CatalogDb,
}

impl AgentTable {
    /// Lists the agents by name, with destroyed ones if `destroyed`.
    pub async fn list(&self, destroyed: bool) -> Result<Vec<AgentRow>> {
        self.db
            .reader
            .submit(move |conn| {
                let filter = if destroyed { "" } else { "WHERE status = 'active'" };
                let mut statement =
                    conn.prepare_cached(&format!("SELECT {COLUMNS} FROM agents {filter} ORDER BY name, created_at"))?;
                let rows = statement.query_map([], read_agent)?.collect::<rusqlite::Result<_>>()?;
                Ok(rows)
            })
            .await
    }

    /// Reads all agents that are not destroyed, as they are stored: by name, each row would be looked up and sorted by
    /// the database, which takes longer.
    ///
    /// # Errors
    /// Fails if the catalog cannot be read.
    pub async fn load_active(&self) -> Result<Vec<AgentRow>> {
        let rows = self.db.reader.submit(|conn| {
            // The `+` keeps the query from the index by name.
            let mut statement = conn.prepare(&format!("SELECT {COLUMNS} FROM agents WHERE +status = 'active'"))?;
            Ok(statement.query_map([], read_agent)?.collect::<rusqlite::Result<Vec<_>>>()?)
        });
        let mut rows = rows.await?;
        rows.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(rows)
    }

    /// Returns the agents with these ids, in no particular order; skips unknown ids.
    pub async fn list_by_id(&self, ids: Vec<Uuid>) -> Result<Vec<AgentRow>> {
        self.db
            .reader
            .submit(move |conn| {
                let mut rows = Vec::with_capacity(ids.len());
                let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM agents WHERE id = ?1"))?;
                for id in ids {
                    rows.extend(statement.query_row([id.as_bytes()], read_agent).map(Some).or_else(allow_no_rows)?);
                }
                Ok(rows)
            })
            .await
    }

    /// Lists the ids of destroyed agents.
    pub async fn list_destroyed(&self) -> Result<Vec<Uuid>> {
        self.db
            .reader
            .submit(|conn| {
                let mut statement = conn.prepare("SELECT id FROM agents WHERE status = 'destroyed'")?;
                let ids = statement.query_map([], |row| row.get(0).map(Uuid::from_bytes))?;
                Ok(ids.collect::<rusqlite::Result<_>>()?)
            })
            .await
    }

    /// Inserts the agent, or updates the row with its id. The count of sessions stays correct.
    pub fn upsert(&self, row: AgentRow) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| upsert(conn, &row))
    }

    /// As [`AgentTable::upsert`], with the agent's memories in the same commit. Returns the ids and texts of the
    /// memories that are new.
    pub fn upsert_with_memories(
        &self,
        row: AgentRow,
        memories: Vec<MemoryRow>,
    ) -> impl Future<Output = Result<Vec<(Uuid, String)>>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            upsert(conn, &row)?;
            let mut added = Vec::new();
            for memory in memories {
                let text = memory.text.clone();
                if let RememberOutcome::New(id) = memories::insert(conn, memory)? {
                    added.push((id, text));
                }
            }
            Ok(added)
        })
    }

    /// Marks the agent as destroyed and records the directory that its files were moved to. Its conversations are not
    /// captured again: `tombstones` are their hashes.
    pub fn mark_destroyed(
        &self,
        id: Uuid,
        at: Timestamp,
        dir: String,
        tombstones: Vec<String>,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            conn.execute(
                "UPDATE agents SET status = 'destroyed', destroyed_at = ?2, dir = ?3 WHERE id = ?1",
                params![id.as_bytes(), to_nanos(at), dir],
            )?;
            tombstones.iter().try_for_each(|hash| capture::insert_tombstone(conn, hash))?;
            Ok(())
        })
    }

    /// Deletes the row of an agent.
    pub fn delete(&self, id: Uuid) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            conn.execute("DELETE FROM agents WHERE id = ?1", [id.as_bytes()])?;
            Ok(())
        })
    }
}

fn allow_no_rows<T>(error: rusqlite::Error) -> rusqlite::Result<Option<T>> {
    match error {
        rusqlite::Error::QueryReturnedNoRows => Ok(None),
        other => Err(other),
    }
}

pub(super) fn upsert(conn: &Connection, row: &AgentRow) -> StoreResult<()> {
    let status = match row.status {
        AgentStatus::Active => "active",
        AgentStatus::Destroyed => "destroyed",
    };
    // The sessions of a restored agent may be in the table before its row is.
    conn.prepare_cached(
        "INSERT INTO agents (id, name, status, created_at, dir, config, stamp, sessions)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, (SELECT count(*) FROM sessions WHERE agent_id = ?1))
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, status = excluded.status, dir = excluded.dir,
             config = excluded.config, stamp = excluded.stamp, destroyed_at = NULL",
    )?
    .execute(params![
        row.id.as_bytes(),
        row.name,
        status,
        to_nanos(row.created_at),
        row.dir,
        row.config,
        row.stamp
    ])?;
    Ok(())
}
