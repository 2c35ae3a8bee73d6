//! Rows of schedules. Those that are due are looked up for the agents that this process owns.

use chorus_base::error::Result;
use chorus_catalog::{
    CatalogRead, CatalogWrite, MAX_DONE_SCHEDULES, PendingKey, ScheduleInsertion, ScheduleProgress, ScheduleRow,
    ScheduleRule, ScheduleState, ScheduleTable, runs_from_json, runs_to_json,
};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::methods::schedule::MissedRuns;
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::{CatalogDb, is_storable, refuse_nul};
use crate::param::Param;
use crate::rows::to_bigint;
use crate::statement::call;

const COLUMNS: &str = "s.id, s.agent_id, s.name, s.cron, s.every_seconds, s.once_at, s.time_zone, s.message, s.missed, \
                       s.created_at, s.created_by, s.state, s.next_at, s.pending_at, s.overdue_at, s.runs, s.version";

/// Schedules of the agents that a process owns.
const OWNED: &str = "schedules s JOIN heads h ON h.agent_id = s.agent_id AND h.owner_node = $1 AND h.owner_boot = $2";

/// The table in PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresScheduleTable {
    pub(super) db: CatalogDb,
}

impl ScheduleTable for PostgresScheduleTable {
    fn insert(&self, row: ScheduleRow, limit: u32) -> CatalogWrite<ScheduleInsertion> {
        let texts = [&row.name, &row.time_zone, &row.message, &row.created_by];
        let grant = refuse_nul(texts.map(String::as_str)).and_then(|()| self.db.grant(row.agent));
        let (id, agent) = (row.id, row.agent);
        let ended = call!(
            "DELETE FROM schedules WHERE agent_id = $1 AND state = 'done' AND pending_at IS NULL AND (name = $2 OR id IN (
                 SELECT id FROM schedules WHERE agent_id = $1 AND state = 'done' ORDER BY created_at DESC OFFSET $3))",
            agent,
            row.name.clone(),
            i64::from(MAX_DONE_SCHEDULES),
        );
        let outcome = "SELECT id FROM schedules WHERE agent_id = $1 AND name = $2";
        let confirm = call!(outcome, agent, row.name.clone());
        let stored = call!(outcome, agent, row.name.clone());
        let (cron, every, once) = match row.rule {
            ScheduleRule::Cron(expression) => (Some(expression), None, None),
            ScheduleRule::EverySeconds(seconds) => (None, Some(to_bigint(seconds)), None),
            ScheduleRule::Once(at) => (None, None, Some(to_nanos(at))),
        };
        let ScheduleProgress { state, next_at, pending_at, overdue_at, runs } = row.progress;
        let insert = call!(
            "INSERT INTO schedules (id, agent_id, name, cron, every_seconds, once_at, time_zone, message, missed, created_at,
                 created_by, state, next_at, pending_at, overdue_at, runs, version)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17
             WHERE (SELECT count(*) FROM schedules WHERE agent_id = $2 AND state <> 'done') < $18
             ON CONFLICT DO NOTHING",
            id,
            agent,
            row.name,
            cron,
            every,
            once,
            row.time_zone,
            row.message,
            row.missed.as_str().to_owned(),
            to_nanos(row.created_at),
            row.created_by,
            state.as_str().to_owned(),
            next_at.map(to_nanos),
            pending_at.map(to_nanos),
            overdue_at.map(to_nanos),
            runs_to_json(&runs),
            row.version,
            i64::from(limit),
        );
        self.db.write_and_read(grant, vec![ended, insert, stored], confirm, move |rows| {
            Ok(match rows.first().map(|row| row.get::<_, Uuid>(0)) {
                Some(known) if known == id => ScheduleInsertion::Inserted,
                Some(_) => ScheduleInsertion::NameTaken,
                None => ScheduleInsertion::LimitReached,
            })
        })
    }

    fn update(&self, row: ScheduleRow) -> CatalogWrite<bool> {
        let ScheduleProgress { state, next_at, pending_at, overdue_at, runs } = row.progress;
        let update = call!(
            "UPDATE schedules SET state = $3, next_at = $4, pending_at = $5, overdue_at = $6, runs = $7, version = version + 1
             WHERE id = $1 AND version = $2 RETURNING version",
            row.id,
            row.version,
            state.as_str().to_owned(),
            next_at.map(to_nanos),
            pending_at.map(to_nanos),
            overdue_at.map(to_nanos),
            runs_to_json(&runs),
        );
        // Only the owner of the agent writes, one change at a time.
        let confirm =
            call!("SELECT version FROM schedules WHERE id = $1 AND version = $2", row.id, row.version.wrapping_add(1));
        self.db.write_and_read(self.db.grant(row.agent), vec![update], confirm, |rows| Ok(!rows.is_empty()))
    }

    fn delete(&self, row: ScheduleRow) -> CatalogWrite<()> {
        let delete = call!("DELETE FROM schedules WHERE id = $1", row.id);
        self.db.write(self.db.grant(row.agent), vec![delete])
    }

    fn delete_of_agent(&self, agent: Uuid) -> CatalogWrite<()> {
        self.db.write(self.db.grant(agent), vec![call!("DELETE FROM schedules WHERE agent_id = $1", agent)])
    }

    fn find(&self, agent: Uuid, name: String) -> CatalogRead<'_, Option<ScheduleRow>> {
        Box::pin(async move {
            if !is_storable(&name) {
                return Ok(None);
            }
            Ok(self.select("schedules s WHERE s.agent_id = $1 AND s.name = $2", &[&agent, &name]).await?.pop())
        })
    }

    fn get(&self, id: Uuid) -> CatalogRead<'_, Option<ScheduleRow>> {
        Box::pin(async move { Ok(self.select("schedules s WHERE s.id = $1", &[&id]).await?.pop()) })
    }

    fn list(&self, agent: Option<Uuid>, offset: u64, limit: u64) -> CatalogRead<'_, Vec<ScheduleRow>> {
        Box::pin(async move {
            let (offset, limit) = (to_bigint(offset), to_bigint(limit));
            match agent {
                Some(agent) => {
                    let rest = "schedules s WHERE s.agent_id = $3 ORDER BY s.name LIMIT $2 OFFSET $1";
                    self.select(rest, &[&offset, &limit, &agent]).await
                }
                None => {
                    let rest = "schedules s ORDER BY s.agent_id, s.name LIMIT $2 OFFSET $1";
                    self.select(rest, &[&offset, &limit]).await
                }
            }
        })
    }

    fn first_due(&self) -> CatalogRead<'_, Option<Timestamp>> {
        Box::pin(async move {
            let (node, boot) = self.db.node();
            let sql = format!("SELECT s.next_at FROM {OWNED} WHERE s.next_at IS NOT NULL ORDER BY s.next_at LIMIT 1");
            let rows = self.db.read(&sql, &[&node, &boot]).await?;
            Ok(rows.first().map(|row| from_nanos(row.get(0))))
        })
    }

    fn due(&self, now: Timestamp, limit: u32) -> CatalogRead<'_, Vec<ScheduleRow>> {
        Box::pin(async move {
            let (node, boot) = self.db.node();
            let rest = format!("{OWNED} WHERE s.next_at <= $3 ORDER BY s.next_at LIMIT $4");
            self.select(&rest, &[&node, &boot, &to_nanos(now), &i64::from(limit)]).await
        })
    }

    fn pending(&self, after: Option<PendingKey>, limit: u32) -> CatalogRead<'_, Vec<ScheduleRow>> {
        Box::pin(async move {
            let (node, boot) = self.db.node();
            let (due, id) = after.map_or((i64::MIN, Uuid::nil()), |(due, id)| (to_nanos(due), id));
            let rest = format!(
                "{OWNED} WHERE s.pending_at IS NOT NULL AND (s.pending_at, s.id) > ($3, $4)
                 ORDER BY s.pending_at, s.id LIMIT $5"
            );
            self.select(&rest, &[&node, &boot, &due, &id, &i64::from(limit)]).await
        })
    }
}

impl PostgresScheduleTable {
    async fn select(&self, rest: &str, params: &[&dyn Param]) -> Result<Vec<ScheduleRow>> {
        let sql = format!("SELECT {COLUMNS} FROM {rest}");
        Ok(self.db.read(&sql, params).await?.iter().map(read_row).collect())
    }
}

fn read_row(row: &Row) -> ScheduleRow {
    let time = |column| row.get::<_, Option<i64>>(column).map(from_nanos);
    let rule = match (row.get(3), row.get::<_, Option<i64>>(4), time(5)) {
        (Some(expression), ..) => ScheduleRule::Cron(expression),
        (None, Some(seconds), _) => ScheduleRule::EverySeconds(u64::try_from(seconds).unwrap_or(0)),
        (None, None, at) => ScheduleRule::Once(at.unwrap_or(Timestamp::UNIX_EPOCH)),
    };
    ScheduleRow {
        id: row.get(0),
        agent: row.get(1),
        name: row.get(2),
        rule,
        time_zone: row.get(6),
        message: row.get(7),
        missed: MissedRuns::parse(row.get(8)),
        created_at: from_nanos(row.get(9)),
        created_by: row.get(10),
        progress: ScheduleProgress {
            state: ScheduleState::parse(row.get(11)),
            next_at: time(12),
            pending_at: time(13),
            overdue_at: time(14),
            runs: runs_from_json(row.get(15)),
        },
        version: row.get(16),
    }
}
