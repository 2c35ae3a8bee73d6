//! Memories of agents.

use chorus_catalog::memories::{MAX_ENTRIES, limit_error};
use chorus_catalog::{CatalogRead, CatalogWrite, MemoryRow, MemoryScope, MemoryTable, RememberOutcome};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::methods::memory::MemorySource;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::CatalogDb;
use crate::sqlite::StoreResult;

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

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteMemoryTable {
    pub(super) db: CatalogDb,
}

impl MemoryTable for SqliteMemoryTable {
    fn insert(&self, row: MemoryRow) -> CatalogWrite<RememberOutcome> {
        self.db.write(move |conn| insert(conn, row))
    }

    fn list_visible(&self, whose: MemoryScope) -> CatalogRead<'_, Vec<MemoryRow>> {
        self.db.read(move |conn| select_visible(conn, &whose, -1))
    }

    fn first_visible(&self, whose: Vec<MemoryScope>, most: u32) -> CatalogRead<'_, Vec<(Vec<MemoryRow>, u64)>> {
        self.db.read(move |conn| {
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
    }

    fn list_written_by(&self, agent: Uuid) -> CatalogRead<'_, Vec<MemoryRow>> {
        self.db.read(move |conn| {
            let query = format!("SELECT {COLUMNS} FROM memory WHERE agent_id = ?1 ORDER BY id");
            let rows = conn
                .prepare_cached(&query)?
                .query_map([agent.as_bytes()], read_memory)?
                .collect::<rusqlite::Result<_>>();
            Ok(rows?)
        })
    }

    fn contains(&self, id: Uuid) -> CatalogRead<'_, bool> {
        self.db.read(move |conn| {
            Ok(conn.prepare_cached("SELECT 1 FROM memory WHERE uid = ?1")?.exists([id.as_bytes()])?)
        })
    }

    fn update_text(&self, id: Uuid, text: String) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.prepare_cached("UPDATE memory SET text = ?2, source = 'hand' WHERE uid = ?1")?
                .execute(params![id.as_bytes(), text])?;
            Ok(())
        })
    }

    fn delete(&self, ids: Vec<Uuid>) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            let mut statement = conn.prepare_cached("DELETE FROM memory WHERE uid = ?1")?;
            for id in ids {
                statement.execute([id.as_bytes()])?;
            }
            Ok(())
        })
    }

    fn delete_own(&self, agent: Uuid) -> CatalogWrite<()> {
        self.db.write(move |conn| {
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
        return Err(limit_error(&row, count).into());
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
