//! Usage of conversations of other programs.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::{
    CatalogRead, CatalogWrite, ImportedCallRow, ImportedDivision, ImportedSums, ImportedUsage, ImportedUsageFilter,
    ImportedUsageRow, ImportedUsageTable, QUARTER_HOUR_NANOS,
};
use chorus_journal::{from_nanos, to_nanos};
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::{CatalogDb, text_of_bytes};
use crate::param::Param;
use crate::rows::{count, to_bigint};
use crate::statement::{Call, call};

/// The table in PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresImportedUsageTable {
    pub(super) db: CatalogDb,
}

impl ImportedUsageTable for PostgresImportedUsageTable {
    fn record(&self, session: Uuid, usage: Arc<ImportedUsage>) -> CatalogRead<'_, ()> {
        Box::pin(async move {
            let sql = "SELECT (SELECT digest FROM imported_calls WHERE session_id = $1),
                 (SELECT agent_id FROM sessions WHERE id = $1)";
            let rows = self.db.read(sql, &[&session]).await?;
            let (known, agent) =
                rows.first().map_or((None, None), |row| (row.get::<_, Option<Vec<u8>>>(0), row.get(1)));
            let is_known = known.as_ref().is_some_and(|known| *known == usage.digest());
            if is_known || (usage.calls.is_empty() && known.is_none()) {
                return Ok(());
            }
            let grant = agent.map_or(Ok(None), |agent| self.db.grant(agent));
            self.db.write(grant, record_calls(session, &usage)).await
        })
    }

    fn move_to(&self, from: Uuid, to: Uuid) -> CatalogWrite<()> {
        let calls = vec![
            self.require_owner(from),
            call!(
                "DELETE FROM imported_usage WHERE session_id = $1
                   AND EXISTS (SELECT FROM imported_calls WHERE session_id = $2)",
                to,
                from
            ),
            call!(
                "DELETE FROM imported_calls WHERE session_id = $1
                   AND EXISTS (SELECT FROM imported_calls WHERE session_id = $2)",
                to,
                from
            ),
            call!("UPDATE imported_usage SET session_id = $2 WHERE session_id = $1", from, to),
            call!("UPDATE imported_calls SET session_id = $2 WHERE session_id = $1", from, to),
        ];
        self.db.write(Ok(None), calls)
    }

    fn delete(&self, session: Uuid) -> CatalogWrite<()> {
        let mut calls = vec![self.require_owner(session)];
        calls.extend(delete_calls(session));
        self.db.write(Ok(None), calls)
    }

    fn delete_of_agent(&self, agent: Uuid) -> CatalogWrite<()> {
        let usage = "DELETE FROM imported_usage
             WHERE session_id IN (SELECT session_id FROM imported_calls WHERE agent_id = $1)";
        let calls = "DELETE FROM imported_calls WHERE agent_id = $1";
        self.db.write(self.db.grant(agent), vec![call!(usage, agent), call!(calls, agent)])
    }

    fn is_empty(&self) -> CatalogRead<'_, bool> {
        Box::pin(async move { Ok(self.db.read("SELECT FROM imported_calls LIMIT 1", &[]).await?.is_empty()) })
    }

    fn sums(&self, filter: ImportedUsageFilter) -> CatalogRead<'_, Vec<ImportedUsageRow>> {
        Box::pin(async move { self.read_sums(&filter).await })
    }
}

impl PostgresImportedUsageTable {
    /// Refuses a write to the usage of a session whose agent another node has.
    fn require_owner(&self, session: Uuid) -> Call {
        let node = &self.db.node;
        let fence = "SELECT require_owner(agent_id, $2, $3) FROM imported_calls
             WHERE session_id = $1 AND agent_id IS NOT NULL";
        call!(fence, session, node.id.clone(), node.boot)
    }

    async fn read_sums(&self, filter: &ImportedUsageFilter) -> Result<Vec<ImportedUsageRow>> {
        let since = filter.since.map(|since| to_nanos(since) / QUARTER_HOUR_NANOS);
        let (mut params, mut conditions) = (Vec::<&dyn Param>::new(), Vec::new());
        if let Some(since) = &since {
            params.push(since);
            conditions.push(format!("u.quarter_hour >= ${}", params.len()));
        }
        if !filter.agents.is_empty() {
            params.push(&filter.agents);
            conditions.push(format!("s.agent_id = ANY (${})", params.len()));
        }
        let condition =
            if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
        let project = if filter.division == ImportedDivision::Project { "s.project" } else { "NULL::text" };
        let quarter = if filter.division == ImportedDivision::Day { "u.quarter_hour" } else { "NULL::bigint" };
        // A session in the trash has no row.
        let sql = format!(
            "SELECT coalesce(s.source_program, '') AS program, {project} AS project, u.model, {quarter} AS quarter,
                 clamp(sum(u.calls)), clamp(sum(u.input)), clamp(sum(u.output)), clamp(sum(u.cache_read)),
                 clamp(sum(u.cache_write)), sum(u.cost_usd), clamp(sum(u.with_cost)), clamp(sum(u.lower_bound))
             FROM imported_usage u JOIN sessions s ON s.id = u.session_id {condition}
             GROUP BY 1, 2, 3, 4 ORDER BY 4"
        );
        let mut sums = HashMap::<_, ImportedSums>::new();
        for row in self.db.read(&sql, &params).await? {
            let day = row.get::<_, Option<i64>>(3).map(|quarter| {
                from_nanos(quarter.saturating_mul(QUARTER_HOUR_NANOS)).to_zoned(filter.zone.clone()).date()
            });
            let group: (String, Option<String>, Vec<u8>, _) = (row.get(0), row.get(1), row.get(2), day);
            sums.entry(group).or_default().add(&read_row_sums(&row));
        }
        let rows = sums.into_iter().map(|((program, project, model, day), sums)| ImportedUsageRow {
            program,
            project,
            day,
            model: text_of_bytes(&model),
            sums,
        });
        Ok(rows.collect())
    }
}

fn read_row_sums(row: &Row) -> ImportedSums {
    ImportedSums {
        calls: count(row, 4),
        input: count(row, 5),
        output: count(row, 6),
        cache_read: count(row, 7),
        cache_write: count(row, 8),
        cost: row.get(9),
        with_cost: count(row, 10),
        lower_bound: count(row, 11),
    }
}

/// Records the usage of a session whose row exists.
pub(crate) fn record_calls(session: Uuid, usage: &ImportedUsage) -> Vec<Call> {
    let each = |field: fn(&ImportedCallRow) -> i64| usage.calls.iter().map(field).collect::<Vec<i64>>();
    vec![call!(
        "SELECT record_imported_usage($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        session,
        usage.digest(),
        usage.models.iter().map(|model| model.clone().into_bytes()).collect::<Vec<_>>(),
        each(|call| call.key.cast_signed()),
        each(|call| call.model.into()),
        each(|call| to_nanos(call.at) / QUARTER_HOUR_NANOS),
        each(|call| call.calls.into()),
        each(|call| to_bigint(call.input)),
        each(|call| to_bigint(call.output)),
        each(|call| to_bigint(call.cache_read)),
        each(|call| to_bigint(call.cache_write)),
        usage.calls.iter().map(|call| call.cost).collect::<Vec<f64>>(),
        each(|call| call.with_cost.into()),
        each(|call| call.lower_bound.into()),
    )]
}

/// Deletes the usage of a session.
pub(crate) fn delete_calls(session: Uuid) -> Vec<Call> {
    vec![
        call!("DELETE FROM imported_usage WHERE session_id = $1", session),
        call!("DELETE FROM imported_calls WHERE session_id = $1", session),
    ]
}

/// Gives the usage of a session to another agent.
pub(crate) fn move_calls(session: Uuid, agent: Uuid) -> Vec<Call> {
    vec![call!("UPDATE imported_calls SET agent_id = $2 WHERE session_id = $1", session, agent)]
}
