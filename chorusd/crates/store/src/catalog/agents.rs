//! Rows of agents.

use chorus_catalog::{
    AgentRow, AgentTable, CatalogRead, CatalogWrite, MemoryRow, RememberOutcome, confine_to_home, name_taken_error,
};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::AgentStatus;
use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, Row, params};
use uuid::Uuid;

use super::CatalogDb;
use super::capture;
use super::memories;
use crate::sqlite::{StoreError, StoreResult};

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

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteAgentTable {
    pub(super) db: CatalogDb,
}

impl AgentTable for SqliteAgentTable {
    fn list(&self, destroyed: bool) -> CatalogRead<'_, Vec<AgentRow>> {
        self.db.read(move |conn| {
            // By name, the database would look each row up and sort them, which takes longer. The `+` keeps the query
            // from the index by name.
            let filter = if destroyed { "" } else { "WHERE +status = 'active'" };
            let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM agents {filter}"))?;
            let mut rows = statement.query_map([], read_agent)?.collect::<rusqlite::Result<Vec<_>>>()?;
            rows.sort_by(|one, other| (&one.name, one.created_at).cmp(&(&other.name, other.created_at)));
            Ok(rows)
        })
    }

    fn list_by_id(&self, ids: Vec<Uuid>) -> CatalogRead<'_, Vec<AgentRow>> {
        self.db.read(move |conn| {
            let mut rows = Vec::with_capacity(ids.len());
            let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM agents WHERE id = ?1"))?;
            for id in ids {
                rows.extend(statement.query_row([id.as_bytes()], read_agent).map(Some).or_else(allow_no_rows)?);
            }
            Ok(rows)
        })
    }

    fn find(&self, name: String) -> CatalogRead<'_, Option<AgentRow>> {
        self.db.read(move |conn| {
            let sql = format!("SELECT {COLUMNS} FROM agents WHERE name = ?1 AND status = 'active'");
            Ok(conn.prepare_cached(&sql)?.query_row([name], read_agent).map(Some).or_else(allow_no_rows)?)
        })
    }

    fn list_destroyed(&self) -> CatalogRead<'_, Vec<Uuid>> {
        self.db.read(|conn| {
            let mut statement = conn.prepare("SELECT id FROM agents WHERE status = 'destroyed'")?;
            let ids = statement.query_map([], |row| row.get(0).map(Uuid::from_bytes))?;
            Ok(ids.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn upsert(&self, row: AgentRow) -> CatalogWrite<()> {
        self.db.write(move |conn| upsert(conn, &row))
    }

    fn upsert_with_memories(&self, row: AgentRow, memories: Vec<MemoryRow>) -> CatalogWrite<Vec<(Uuid, String)>> {
        self.db.write(move |conn| {
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

    fn mark_destroyed(&self, id: Uuid, at: Timestamp, dir: String, tombstones: Vec<String>) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.execute(
                "UPDATE agents SET status = 'destroyed', destroyed_at = ?2, dir = ?3 WHERE id = ?1",
                params![id.as_bytes(), to_nanos(at), dir],
            )?;
            tombstones.iter().try_for_each(|hash| capture::insert_tombstone(conn, hash))?;
            Ok(())
        })
    }

    fn delete(&self, id: Uuid) -> CatalogWrite<()> {
        self.db.write(move |conn| {
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
    .execute(params![row.id.as_bytes(), row.name, status, to_nanos(row.created_at), row.dir, row.config, row.stamp])
    .map_err(|e| match e.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => StoreError::from(name_taken_error()),
        _ => e.into(),
    })?;
    Ok(())
}
