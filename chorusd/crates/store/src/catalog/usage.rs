//! Rows of usage: one per model call.

use std::collections::HashMap;

use chorus_catalog::{
    CatalogRead, CatalogWrite, DailyUsage, DailyUsageRow, QUARTER_HOUR_NANOS, Spending, UsageFilter, UsageRow,
    UsageTable, UsageTotals,
};
use chorus_journal::to_nanos;
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};
use uuid::Uuid;

use super::CatalogDb;

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteUsageTable {
    pub(super) db: CatalogDb,
}

impl UsageTable for SqliteUsageTable {
    fn insert(&self, row: UsageRow) -> CatalogWrite<i64> {
        self.db.write(move |conn| {
            conn.prepare_cached(
                "INSERT INTO usage (at, agent_id, agent_name, context, turn_id, model, kind, input, output, cache_read,
                     cache_write, cost_usd, duration_ms, estimated, by_estimate, conversation_id)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
            )?
            .execute(params![
                to_nanos(row.at),
                row.agent_id.as_bytes(),
                row.agent_name,
                row.context.map(|context| context.0),
                row.turn_id.map(|id| id.as_bytes().to_vec()),
                row.model,
                row.kind.as_str(),
                row.input,
                row.output,
                row.cache_read,
                row.cache_write,
                row.cost_usd,
                row.duration_ms,
                row.estimated,
                row.by_estimate,
                row.conversation_id.map(Uuid::into_bytes),
            ])?;
            Ok(conn.last_insert_rowid())
        })
    }

    fn spending_by_agent(&self, since: Timestamp) -> CatalogRead<'_, (HashMap<Uuid, Spending>, i64)> {
        self.db.read(move |conn| {
            // Read this first and limit the sum to it, so that a row that is inserted in between is counted by the
            // caller only.
            let newest = conn.query_row("SELECT coalesce(max(id), 0) FROM usage", [], |row| row.get(0))?;
            let mut statement = conn.prepare_cached(
                "SELECT agent_id, sum(input + output), total(cost_usd), count(*), count(*) - count(cost_usd)
                     FROM usage WHERE at >= ?1 AND id <= ?2 GROUP BY agent_id",
            )?;
            let spent = |row: &Row<'_>| {
                let spent =
                    Spending { tokens: row.get(1)?, cost: row.get(2)?, calls: row.get(3)?, unpriced: row.get(4)? };
                Ok((Uuid::from_bytes(row.get(0)?), spent))
            };
            let all = statement.query_map(params![to_nanos(since), newest], spent)?;
            Ok((all.collect::<rusqlite::Result<_>>()?, newest))
        })
    }

    fn estimated_calls(&self, count: u32) -> CatalogRead<'_, Vec<(String, u64, u64, u64)>> {
        self.db.read(move |conn| {
                let mut statement = conn.prepare_cached(
                    "SELECT model, estimated, input, cache_read FROM usage
                     WHERE estimated > 0 AND by_estimate = 0 AND id > coalesce((
                         SELECT value FROM counters WHERE name = 'usage_estimated_by_length'), 0) ORDER BY id DESC LIMIT ?1",
                )?;
                let call = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
                let mut calls = statement.query_map([count], call)?.collect::<rusqlite::Result<Vec<_>>>()?;
                calls.reverse();
                Ok(calls)
            })
    }

    fn list_daily(&self, filter: UsageFilter) -> CatalogRead<'_, Vec<DailyUsageRow>> {
        self.db.read(move |conn| {
                let mut values = vec![Value::Integer(filter.since.map_or(i64::MIN, to_nanos))];
                values.extend(filter.agents.iter().map(|agent| Value::Blob(agent.as_bytes().to_vec())));
                let of = if filter.agents.is_empty() {
                    String::new()
                } else {
                    format!("AND agent_id IN ({})", vec!["?"; filter.agents.len()].join(", "))
                };
                let conversation = if filter.by_conversation { "conversation_id" } else { "NULL" };
                // SQLite takes the name from the row with the highest number.
                let mut statement = conn.prepare(&format!(
                    "SELECT at / {QUARTER_HOUR_NANOS}, agent_id, agent_name, max(id), model, count(*), sum(input), sum(output),
                            sum(cache_read), total(cost_usd), count(*) - count(cost_usd), sum(by_estimate), {conversation}
                     FROM usage WHERE at >= ? {of} GROUP BY 1, 2, 5, 13 ORDER BY 1"
                ))?;
                let mut days = DailyUsage::new(filter.zone);
                let mut rows = statement.query(params_from_iter(values))?;
                while let Some(row) = rows.next()? {
                    let sums = UsageTotals {
                        calls: row.get(5)?,
                        input: row.get(6)?,
                        output: row.get(7)?,
                        cache_read: row.get(8)?,
                        cost: row.get(9)?,
                        unpriced: row.get(10)?,
                        by_estimate: row.get(11)?,
                        lower_bound: 0,
                    };
                    let agent = (Uuid::from_bytes(row.get(1)?), row.get(2)?);
                    let conversation = row.get::<_, Option<[u8; 16]>>(12)?.map(Uuid::from_bytes);
                    days.add(row.get(0)?, agent, conversation, row.get(4)?, &sums);
                }
                Ok(days.into_rows())
            })
    }

    fn agents_named(&self, name: String) -> CatalogRead<'_, Vec<Uuid>> {
        self.db.read(move |conn| {
            let mut statement = conn.prepare_cached("SELECT DISTINCT agent_id FROM usage WHERE agent_name = ?1")?;
            let ids = statement
                .query_map([name], |row| row.get(0).map(Uuid::from_bytes))?
                .collect::<rusqlite::Result<_>>()?;
            Ok(ids)
        })
    }
}
