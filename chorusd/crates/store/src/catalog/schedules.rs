//! Rows of schedules.

use chorus_catalog::{
    CatalogRead, CatalogWrite, MAX_DONE_SCHEDULES, PendingKey, ScheduleInsertion, ScheduleProgress, ScheduleRow,
    ScheduleRule, ScheduleState, ScheduleTable, runs_from_json, runs_to_json,
};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::methods::schedule::MissedRuns;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};
use uuid::Uuid;

use super::CatalogDb;
use crate::sqlite::StoreResult;

const COLUMNS: &str = "id, agent_id, name, cron, every_seconds, once_at, time_zone, message, missed, created_at, created_by, \
                       state, next_at, pending_at, overdue_at, runs, version";

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteScheduleTable {
    pub(super) db: CatalogDb,
}

impl ScheduleTable for SqliteScheduleTable {
    fn insert(&self, row: ScheduleRow, limit: u32) -> CatalogWrite<ScheduleInsertion> {
        self.db.write(move |conn| insert(conn, &row, limit))
    }

    fn update(&self, row: ScheduleRow) -> CatalogWrite<bool> {
        self.db.write(move |conn| {
            let ScheduleProgress { state, next_at, pending_at, overdue_at, runs } = row.progress;
            let sql = "UPDATE schedules SET state = ?3, next_at = ?4, pending_at = ?5, overdue_at = ?6, runs = ?7,
                     version = version + 1
                 WHERE id = ?1 AND version = ?2";
            let changed = conn.prepare_cached(sql)?.execute(params![
                row.id.as_bytes(),
                row.version,
                state.as_str(),
                next_at.map(to_nanos),
                pending_at.map(to_nanos),
                overdue_at.map(to_nanos),
                runs_to_json(&runs),
            ])?;
            Ok(changed == 1)
        })
    }

    fn delete(&self, row: ScheduleRow) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.prepare_cached("DELETE FROM schedules WHERE id = ?1")?.execute([row.id.as_bytes()])?;
            Ok(())
        })
    }

    fn delete_of_agent(&self, agent: Uuid) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.prepare_cached("DELETE FROM schedules WHERE agent_id = ?1")?.execute([agent.as_bytes()])?;
            Ok(())
        })
    }

    fn find(&self, agent: Uuid, name: String) -> CatalogRead<'_, Option<ScheduleRow>> {
        self.db.read(move |conn| {
            let sql = format!("SELECT {COLUMNS} FROM schedules WHERE agent_id = ?1 AND name = ?2");
            Ok(conn.prepare_cached(&sql)?.query_row(params![agent.as_bytes(), name], read_row).optional()?)
        })
    }

    fn get(&self, id: Uuid) -> CatalogRead<'_, Option<ScheduleRow>> {
        self.db.read(move |conn| {
            let sql = format!("SELECT {COLUMNS} FROM schedules WHERE id = ?1");
            Ok(conn.prepare_cached(&sql)?.query_row([id.as_bytes()], read_row).optional()?)
        })
    }

    fn list(&self, agent: Option<Uuid>, offset: u64, limit: u64) -> CatalogRead<'_, Vec<ScheduleRow>> {
        self.db.read(move |conn| {
            let number = |number| i64::try_from(number).unwrap_or(i64::MAX);
            let page = (number(limit), number(offset));
            match agent {
                // Rows before the page are skipped in the index.
                Some(agent) => select(
                    conn,
                    "WHERE id IN (SELECT id FROM schedules WHERE agent_id = ?3 ORDER BY name LIMIT ?1 OFFSET ?2) ORDER BY name",
                    params![page.0, page.1, agent.as_bytes()],
                ),
                None => select(
                    conn,
                    "WHERE id IN (SELECT id FROM schedules ORDER BY agent_id, name LIMIT ?1 OFFSET ?2)
                     ORDER BY agent_id, name",
                    params![page.0, page.1],
                ),
            }
        })
    }

    fn first_due(&self) -> CatalogRead<'_, Option<Timestamp>> {
        self.db.read(|conn| {
            let sql = "SELECT min(next_at) FROM schedules WHERE next_at IS NOT NULL";
            Ok(conn.prepare_cached(sql)?.query_row([], |row| row.get::<_, Option<i64>>(0))?.map(from_nanos))
        })
    }

    fn due(&self, now: Timestamp, limit: u32) -> CatalogRead<'_, Vec<ScheduleRow>> {
        self.db.read(move |conn| {
            select(conn, "WHERE next_at <= ?1 ORDER BY next_at LIMIT ?2", params![to_nanos(now), limit])
        })
    }

    fn pending(&self, after: Option<PendingKey>, limit: u32) -> CatalogRead<'_, Vec<ScheduleRow>> {
        self.db.read(move |conn| match after {
            Some((due, id)) => select(
                conn,
                "WHERE pending_at IS NOT NULL AND (pending_at, id) > (?2, ?3) ORDER BY pending_at, id LIMIT ?1",
                params![limit, to_nanos(due), id.as_bytes()],
            ),
            None => select(conn, "WHERE pending_at IS NOT NULL ORDER BY pending_at, id LIMIT ?1", params![limit]),
        })
    }
}

fn select(conn: &Connection, condition: &str, params: &[&dyn ToSql]) -> StoreResult<Vec<ScheduleRow>> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM schedules {condition}"))?;
    Ok(statement.query_map(params, read_row)?.collect::<rusqlite::Result<_>>()?)
}

fn insert(conn: &Connection, row: &ScheduleRow, limit: u32) -> StoreResult<ScheduleInsertion> {
    let agent = row.agent.as_bytes();
    let ended = "DELETE FROM schedules WHERE agent_id = ?1 AND state = 'done' AND pending_at IS NULL AND (name = ?2 OR id IN (
             SELECT id FROM schedules WHERE agent_id = ?1 AND state = 'done' ORDER BY created_at DESC LIMIT -1 OFFSET ?3))";
    conn.prepare_cached(ended)?.execute(params![agent, row.name, MAX_DONE_SCHEDULES])?;
    let taken = "SELECT 1 FROM schedules WHERE agent_id = ?1 AND name = ?2";
    if conn.prepare_cached(taken)?.exists(params![agent, row.name])? {
        return Ok(ScheduleInsertion::NameTaken);
    }
    let count = "SELECT count(*) FROM schedules WHERE agent_id = ?1 AND state <> 'done'";
    let count: u32 = conn.prepare_cached(count)?.query_row([agent], |row| row.get(0))?;
    if count >= limit {
        return Ok(ScheduleInsertion::LimitReached);
    }
    let (cron, every, once) = match &row.rule {
        ScheduleRule::Cron(expression) => (Some(expression), None, None),
        ScheduleRule::EverySeconds(seconds) => (None, Some(i64::try_from(*seconds).unwrap_or(i64::MAX)), None),
        ScheduleRule::Once(at) => (None, None, Some(to_nanos(*at))),
    };
    let ScheduleProgress { state, next_at, pending_at, overdue_at, runs } = &row.progress;
    let sql = format!(
        "INSERT INTO schedules ({COLUMNS})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)"
    );
    conn.prepare_cached(&sql)?.execute(params![
        row.id.as_bytes(),
        agent,
        row.name,
        cron,
        every,
        once,
        row.time_zone,
        row.message,
        row.missed.as_str(),
        to_nanos(row.created_at),
        row.created_by,
        state.as_str(),
        next_at.map(to_nanos),
        pending_at.map(to_nanos),
        overdue_at.map(to_nanos),
        runs_to_json(runs),
        row.version,
    ])?;
    Ok(ScheduleInsertion::Inserted)
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<ScheduleRow> {
    let time = |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(from_nanos));
    let rule = match (row.get(3)?, row.get::<_, Option<i64>>(4)?, time(5)?) {
        (Some(expression), ..) => ScheduleRule::Cron(expression),
        (None, Some(seconds), _) => ScheduleRule::EverySeconds(u64::try_from(seconds).unwrap_or(0)),
        (None, None, at) => ScheduleRule::Once(at.unwrap_or(Timestamp::UNIX_EPOCH)),
    };
    Ok(ScheduleRow {
        id: Uuid::from_bytes(row.get(0)?),
        agent: Uuid::from_bytes(row.get(1)?),
        name: row.get(2)?,
        rule,
        time_zone: row.get(6)?,
        message: row.get(7)?,
        missed: MissedRuns::parse(row.get_ref(8)?.as_str()?),
        created_at: from_nanos(row.get(9)?),
        created_by: row.get(10)?,
        progress: ScheduleProgress {
            state: ScheduleState::parse(row.get_ref(11)?.as_str()?),
            next_at: time(12)?,
            pending_at: time(13)?,
            overdue_at: time(14)?,
            runs: runs_from_json(row.get_ref(15)?.as_str()?),
        },
        version: row.get(16)?,
    })
}
