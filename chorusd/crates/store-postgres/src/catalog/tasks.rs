//! Rows of tasks.

use std::collections::HashMap;

use chorus_catalog::{CatalogRead, CatalogWrite, TaskRow, TaskTable, TasksAtStart};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::methods::tasks::TaskStatus;
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::{CatalogDb, is_storable, refuse_nul};
use crate::rows::{count, to_bigint};
use crate::statement::call;

const COLUMNS: &str = "id, agent_id, agent_name, command, pid, pid_started, boot, status, exit_code, signal, started_at, \
                       ended_at, log_path, conversation_id";

/// Running tasks first, then the others, the newest first.
const ORDER: &str = "(status <> 'running'), (coalesce(ended_at, started_at)) DESC, started_at DESC, id";

/// The table in PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresTaskTable {
    pub(super) db: CatalogDb,
}

impl TaskTable for PostgresTaskTable {
    fn insert(&self, row: TaskRow) -> CatalogWrite<()> {
        let texts = [&row.id, &row.agent_name, &row.command, &row.boot, &row.log_path];
        let grant = refuse_nul(texts.map(String::as_str)).and_then(|()| self.db.grant(row.agent));
        let insert = call!(
            "INSERT INTO tasks (id, agent_id, agent_name, command, pid, pid_started, boot, status, exit_code, signal,
                 started_at, ended_at, log_path, conversation_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
            row.id,
            row.agent,
            row.agent_name,
            row.command,
            i64::from(row.pid),
            to_bigint(row.pid_started),
            row.boot,
            row.status.as_str().to_owned(),
            row.exit_code.map(i64::from),
            row.signal.map(i64::from),
            to_nanos(row.started_at),
            row.ended_at.map(to_nanos),
            row.log_path,
            row.conversation_id,
        );
        self.db.write(grant, vec![insert])
    }

    fn update_end(&self, row: TaskRow) -> CatalogWrite<()> {
        let grant = refuse_nul([&*row.id]).and_then(|()| self.db.grant(row.agent));
        let update = call!(
            "UPDATE tasks SET status = $2, exit_code = $3, signal = $4, ended_at = $5 WHERE id = $1",
            row.id,
            row.status.as_str().to_owned(),
            row.exit_code.map(i64::from),
            row.signal.map(i64::from),
            row.ended_at.map(to_nanos),
        );
        self.db.write(grant, vec![update])
    }

    fn mark_reported(&self, id: String) -> CatalogWrite<()> {
        let grant = refuse_nul([&*id]).map(|()| None);
        let node = &self.db.node;
        let calls = vec![
            call!(
                "SELECT require_owner(agent_id, $2, $3) FROM tasks WHERE id = $1",
                id.clone(),
                node.id.clone(),
                node.boot
            ),
            call!("UPDATE tasks SET reported = true WHERE id = $1", id),
        ];
        self.db.write(grant, calls)
    }

    /// Reads the tasks of the agents that this process owns; the highest number is that in the node's range, or the one before
    /// it.
    fn list_at_start(&self) -> CatalogRead<'_, TasksAtStart> {
        Box::pin(async move {
            let agents = self.db.owned_agents();
            let counts = "SELECT NULL, (SELECT coalesce(max(number), first) FROM tasks
                         WHERE number >= first AND number < first + 1000000000)
                     FROM (SELECT task_range * 1000000000 AS first FROM nodes WHERE id = $2) AS own UNION ALL (
                     SELECT agent_id, count(*) FROM tasks WHERE status <> 'running' AND agent_id = ANY ($1)
                     GROUP BY agent_id)";
            let (mut last, mut ended) = (0, HashMap::new());
            for row in self.db.read(counts, &[&agents, &self.db.node.id]).await? {
                match row.get(0) {
                    Some(agent) => drop(ended.insert(agent, count(&row, 1))),
                    None => last = count(&row, 1),
                }
            }
            let unreported = format!(
                "SELECT {COLUMNS} FROM tasks WHERE NOT reported AND agent_id = ANY ($1) ORDER BY started_at, id"
            );
            let unreported = self.db.read(&unreported, &[&agents]).await?.iter().map(read_task).collect();
            Ok(TasksAtStart { last, unreported, ended })
        })
    }

    fn list_unreported(&self, agent: Uuid) -> CatalogRead<'_, Vec<TaskRow>> {
        Box::pin(async move {
            let sql =
                format!("SELECT {COLUMNS} FROM tasks WHERE NOT reported AND agent_id = $1 ORDER BY started_at, id");
            Ok(self.db.read(&sql, &[&agent]).await?.iter().map(read_task).collect())
        })
    }

    fn get(&self, id: String) -> CatalogRead<'_, Option<TaskRow>> {
        Box::pin(async move {
            if !is_storable(&id) {
                return Ok(None);
            }
            let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = $1");
            Ok(self.db.read(&sql, &[&id]).await?.first().map(read_task))
        })
    }

    fn list(&self, agent: Option<Uuid>, offset: u64, limit: u64) -> CatalogRead<'_, Vec<TaskRow>> {
        Box::pin(async move {
            let (offset, limit) = (to_bigint(offset), to_bigint(limit));
            let rows = match agent {
                Some(agent) => {
                    let sql =
                        format!("SELECT {COLUMNS} FROM tasks WHERE agent_id = $3 ORDER BY {ORDER} LIMIT $2 OFFSET $1");
                    self.db.read(&sql, &[&offset, &limit, &agent]).await?
                }
                None => {
                    let sql = format!("SELECT {COLUMNS} FROM tasks ORDER BY {ORDER} LIMIT $2 OFFSET $1");
                    self.db.read(&sql, &[&offset, &limit]).await?
                }
            };
            Ok(rows.iter().map(read_task).collect())
        })
    }
}

fn read_task(row: &Row) -> TaskRow {
    let small = |column| row.get::<_, Option<i64>>(column).and_then(|number| i32::try_from(number).ok());
    TaskRow {
        id: row.get(0),
        agent: row.get(1),
        agent_name: row.get(2),
        command: row.get(3),
        pid: u32::try_from(row.get::<_, i64>(4)).unwrap_or(0),
        pid_started: count(row, 5),
        boot: row.get(6),
        // The table accepts no other words.
        status: TaskStatus::parse(row.get(7)).unwrap_or(TaskStatus::Lost),
        exit_code: small(8),
        signal: small(9),
        started_at: from_nanos(row.get(10)),
        ended_at: row.get::<_, Option<i64>>(11).map(from_nanos),
        log_path: row.get(12),
        conversation_id: row.get(13),
    }
}
