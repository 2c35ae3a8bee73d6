//! Rows of tasks.

use chorus_catalog::{CatalogRead, CatalogWrite, TaskRow, TaskTable, TasksAtStart};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::methods::tasks::TaskStatus;
use rusqlite::{OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::CatalogDb;

const COLUMNS: &str = "id, agent_id, agent_name, command, pid, pid_started, boot, status, exit_code, signal, started_at, \
                       ended_at, log_path, conversation_id";

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteTaskTable {
    pub(super) db: CatalogDb,
}

impl TaskTable for SqliteTaskTable {
    fn insert(&self, row: TaskRow) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.prepare_cached(&format!(
                "INSERT INTO tasks ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
            ))?
            .execute(params![
                row.id,
                row.agent.as_bytes(),
                row.agent_name,
                row.command,
                row.pid,
                i64::try_from(row.pid_started).unwrap_or(i64::MAX),
                row.boot,
                row.status.as_str(),
                row.exit_code,
                row.signal,
                to_nanos(row.started_at),
                row.ended_at.map(to_nanos),
                row.log_path,
                row.conversation_id.map(Uuid::into_bytes),
            ])?;
            Ok(())
        })
    }

    fn update_end(&self, row: TaskRow) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.prepare_cached(
                "UPDATE tasks SET status = ?2, exit_code = ?3, signal = ?4, ended_at = ?5 WHERE id = ?1",
            )?
            .execute(params![
                row.id,
                row.status.as_str(),
                row.exit_code,
                row.signal,
                row.ended_at.map(to_nanos)
            ])?;
            Ok(())
        })
    }

    fn mark_reported(&self, id: String) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.prepare_cached("UPDATE tasks SET told = 1 WHERE id = ?1")?.execute([id])?;
            Ok(())
        })
    }

    fn list_at_start(&self) -> CatalogRead<'_, TasksAtStart> {
        self.db.read(|conn| {
            let last = "SELECT coalesce(max(CAST(substr(id, 2) AS INTEGER)), 0) FROM tasks";
            let last = conn.prepare_cached(last)?.query_row([], |row| row.get(0))?;
            let untold = format!("SELECT {COLUMNS} FROM tasks WHERE told = 0 ORDER BY started_at");
            let untold = conn.prepare_cached(&untold)?.query_map([], read_task)?.collect::<rusqlite::Result<_>>()?;
            let ended = "SELECT agent_id, count(*) FROM tasks WHERE status <> 'running' GROUP BY agent_id";
            let ended = conn
                .prepare_cached(ended)?
                .query_map([], |row| Ok((Uuid::from_bytes(row.get(0)?), row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            Ok(TasksAtStart { last, unreported: untold, ended })
        })
    }

    fn get(&self, id: String) -> CatalogRead<'_, Option<TaskRow>> {
        self.db.read(move |conn| {
            let one = format!("SELECT {COLUMNS} FROM tasks WHERE id = ?1");
            Ok(conn.prepare_cached(&one)?.query_row([id], read_task).optional()?)
        })
    }

    fn list(&self, agent: Option<Uuid>, offset: u64, limit: u64) -> CatalogRead<'_, Vec<TaskRow>> {
        self.db.read(move |conn| {
            let text = format!(
                "SELECT {COLUMNS} FROM tasks WHERE ?1 IS NULL OR agent_id = ?1
                     ORDER BY status <> 'running', coalesce(ended_at, started_at) DESC, started_at DESC, id
                     LIMIT ?2 OFFSET ?3"
            );
            let number = |number| i64::try_from(number).unwrap_or(i64::MAX);
            let rows = conn
                .prepare_cached(&text)?
                .query_map(params![agent.map(|id| *id.as_bytes()), number(limit), number(offset)], read_task)?
                .collect::<rusqlite::Result<_>>()?;
            Ok(rows)
        })
    }
}

fn read_task(row: &Row<'_>) -> rusqlite::Result<TaskRow> {
    let status: String = row.get(7)?;
    Ok(TaskRow {
        id: row.get(0)?,
        agent: Uuid::from_bytes(row.get(1)?),
        agent_name: row.get(2)?,
        command: row.get(3)?,
        pid: row.get(4)?,
        pid_started: row.get(5)?,
        boot: row.get(6)?,
        // The table accepts no other words.
        status: TaskStatus::parse(&status).unwrap_or(TaskStatus::Lost),
        exit_code: row.get(8)?,
        signal: row.get(9)?,
        started_at: from_nanos(row.get(10)?),
        ended_at: row.get::<_, Option<i64>>(11)?.map(from_nanos),
        log_path: row.get(12)?,
        conversation_id: row.get::<_, Option<[u8; 16]>>(13)?.map(Uuid::from_bytes),
    })
}
