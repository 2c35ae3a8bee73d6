//! Rows of usage: one per model call.

use std::collections::HashMap;

use chorus_catalog::{
    CatalogRead, CatalogWrite, DailyUsage, DailyUsageRow, QUARTER_HOUR_NANOS, Spending, UsageFilter, UsageRow,
    UsageTable, UsageTotals,
};
use chorus_journal::to_nanos;
use jiff::Timestamp;
use uuid::Uuid;

use super::database::{CatalogDb, is_storable, only, refuse_nul};
use crate::param::Param;
use crate::rows::{count, to_bigint};
use crate::statement::call;
use crate::writer::MAX_JOBS_PER_COMMIT;

/// Limit of rows in a transaction.
const MAX_ROWS_PER_COMMIT: i64 = MAX_JOBS_PER_COMMIT as i64;

/// The table in PostgreSQL. What was spent is recorded whoever owns the agent by then.
#[derive(Debug)]
pub(crate) struct PostgresUsageTable {
    pub(super) db: CatalogDb,
}

impl UsageTable for PostgresUsageTable {
    fn insert(&self, row: UsageRow) -> CatalogWrite<i64> {
        let grant = refuse_nul([&*row.agent_name, &*row.model]).map(|()| None);
        let (node, write) = (self.db.node.id.clone(), Uuid::new_v4());
        // It is one of those that were committed last.
        let confirm = call!(
            "SELECT id FROM (SELECT id, write_id FROM usage WHERE node = $1 ORDER BY id DESC LIMIT $3) AS newest
             WHERE write_id = $2",
            node.clone(),
            write,
            MAX_ROWS_PER_COMMIT,
        );
        let insert = call!(
            "INSERT INTO usage (node, write_id, at, agent_id, agent_name, context, turn_id, model, kind, input, output,
                 cache_read, cache_write, cost_usd, duration_ms, estimated, by_estimate, conversation_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) RETURNING id",
            node,
            write,
            to_nanos(row.at),
            row.agent_id,
            row.agent_name,
            row.context.map(|context| context.0),
            row.turn_id,
            row.model,
            row.kind.as_str().to_owned(),
            to_bigint(row.input),
            to_bigint(row.output),
            to_bigint(row.cache_read),
            to_bigint(row.cache_write),
            row.cost_usd,
            to_bigint(row.duration_ms),
            to_bigint(row.estimated),
            row.by_estimate,
            row.conversation_id,
        );
        self.db.write_and_read(grant, vec![insert], confirm, |rows| Ok(only(rows)?.get(0)))
    }

    /// Rows of other nodes count if they were committed. The number is that of the newest row of this node, whose rows are
    /// committed in the order of their numbers.
    fn spending_by_agent(&self, since: Timestamp) -> CatalogRead<'_, (HashMap<Uuid, Spending>, i64)> {
        Box::pin(async move {
            let sql = "WITH newest AS (SELECT coalesce(max(id), 0) AS id FROM usage WHERE node = $1)
                 SELECT newest.id, spent.* FROM newest LEFT JOIN (
                     SELECT agent_id, clamp(sum(input + output)), total_cost(cost_usd), count(*),
                         count(*) - count(cost_usd)
                     FROM usage WHERE at >= $2 GROUP BY agent_id) AS spent ON true";
            let rows = self.db.read(sql, &[&self.db.node.id, &to_nanos(since)]).await?;
            let newest = only(&rows)?.get(0);
            // Without spending there is one row, of nobody.
            let spent = rows.iter().filter_map(|row| {
                let agent = row.get::<_, Option<Uuid>>(1)?;
                let (tokens, calls) = (count(row, 2), count(row, 4));
                Some((agent, Spending { tokens, cost: row.get(3), calls, unpriced: count(row, 5) }))
            });
            Ok((spent.collect(), newest))
        })
    }

    fn estimated_calls(&self, number: u32) -> CatalogRead<'_, Vec<(String, u64, u64, u64)>> {
        Box::pin(async move {
            let sql = "SELECT model, estimated, input, cache_read FROM usage WHERE estimated > 0 AND NOT by_estimate
                 ORDER BY id DESC LIMIT $1";
            let rows = self.db.read(sql, &[&i64::from(number)]).await?;
            Ok(rows.iter().rev().map(|row| (row.get(0), count(row, 1), count(row, 2), count(row, 3))).collect())
        })
    }

    fn list_daily(&self, filter: UsageFilter) -> CatalogRead<'_, Vec<DailyUsageRow>> {
        Box::pin(async move {
            let since = filter.since.map_or(i64::MIN, to_nanos);
            let mut params: Vec<&dyn Param> = vec![&since];
            let mut of = "";
            if !filter.agents.is_empty() {
                params.push(&filter.agents);
                of = "AND agent_id = ANY ($2)";
            }
            let conversation = if filter.by_conversation { "conversation_id" } else { "NULL::uuid" };
            // The name is that of the newest row. Rows of one quarter are in the order in which SQLite returns them, so that
            // the last name of an agent is the same.
            let sql = format!(
                "SELECT sums.quarter, sums.agent_id, named.agent_name, sums.model, sums.conversation, sums.calls,
                     sums.input, sums.output, sums.cache_read, sums.cost, sums.unpriced, sums.by_estimate
                 FROM (
                     SELECT at / {QUARTER_HOUR_NANOS} AS quarter, agent_id, model, {conversation} AS conversation,
                         max(id) AS newest, count(*) AS calls, clamp(sum(input)) AS input, clamp(sum(output)) AS output,
                         clamp(sum(cache_read)) AS cache_read, total_cost(cost_usd) AS cost,
                         count(*) - count(cost_usd) AS unpriced, count(*) FILTER (WHERE by_estimate) AS by_estimate
                     FROM usage WHERE at >= $1 {of} GROUP BY 1, 2, 3, 4) AS sums
                 JOIN usage AS named ON named.id = sums.newest
                 ORDER BY sums.quarter, sums.agent_id, sums.model, sums.conversation NULLS FIRST"
            );
            let mut days = DailyUsage::new(filter.zone.clone());
            for row in self.db.read(&sql, &params).await? {
                let sums = UsageTotals {
                    calls: count(&row, 5),
                    input: count(&row, 6),
                    output: count(&row, 7),
                    cache_read: count(&row, 8),
                    cost: row.get(9),
                    unpriced: count(&row, 10),
                    by_estimate: count(&row, 11),
                    lower_bound: 0,
                };
                days.add(row.get(0), (row.get(1), row.get(2)), row.get(4), row.get(3), &sums);
            }
            Ok(days.into_rows())
        })
    }

    fn agents_named(&self, name: String) -> CatalogRead<'_, Vec<Uuid>> {
        Box::pin(async move {
            if !is_storable(&name) {
                return Ok(Vec::new());
            }
            // Looks each id up in the index, rather than read all rows of the agent.
            let sql = "WITH RECURSIVE found AS (
                     (SELECT agent_id FROM usage WHERE agent_name = $1 ORDER BY agent_id LIMIT 1)
                     UNION ALL
                     SELECT (SELECT agent_id FROM usage WHERE agent_name = $1 AND agent_id > found.agent_id
                             ORDER BY agent_id LIMIT 1)
                     FROM found WHERE found.agent_id IS NOT NULL
                 ) SELECT agent_id FROM found WHERE agent_id IS NOT NULL";
            Ok(self.db.read(sql, &[&name]).await?.iter().map(|row| row.get(0)).collect())
        })
    }
}
