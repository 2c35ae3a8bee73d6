//! The statement that reads a page of the audit log. It costs what the page has, however long the log is.

use chorus_catalog::{AuditFilter, MAX_AUDIT_PAGE_BYTES, MAX_AUDIT_PAGE_ROWS};
use chorus_journal::to_nanos;
use uuid::Uuid;

use crate::param::Param;
use crate::rows::to_bigint;

/// Columns of a row besides its number.
pub(super) const COLUMNS: &str = "at, agent_id, agent_name, turn_id, action, decision, rule, requester, old, new, hash";

/// A statement and its parameters.
pub(super) struct PageQuery {
    pub(super) sql: String,
    after: i64,
    since: Option<i64>,
    agents: Vec<Uuid>,
    limit: Option<i64>,
}

impl PageQuery {
    /// The parameters that the statement names.
    pub(super) fn params(&self) -> Vec<&dyn Param> {
        let mut params: Vec<&dyn Param> = vec![&self.after];
        params.extend(self.since.as_ref().map(|since| since as &dyn Param));
        if !self.agents.is_empty() {
            params.push(&self.agents);
        }
        params.extend(self.limit.as_ref().map(|limit| limit as &dyn Param));
        params
    }
}

/// Returns the statement for a page. Its rows have the position, [`COLUMNS`], and how many there were to choose from.
pub(super) fn page_query(filter: &AuditFilter) -> PageQuery {
    let mut used = 1;
    let mut next = || {
        used += 1;
        used
    };
    let since = filter.since.map(|_| next());
    let agents = (!filter.agents.is_empty()).then(&mut next);
    let limit = filter.limit.map(|_| next());
    // The rows before a time are skipped by the lowest position of those that follow. The sum keeps the planner from the
    // index by position, which it would read from the start.
    let start = since.map_or(String::new(), |since| {
        format!(" AND position >= (SELECT min(position + 0) FROM audit_log WHERE at >= ${since}) AND at >= ${since}")
    });
    let matching = |columns: &str, after: &str, order: &str, most: &str| match agents {
        // Each agent's rows are in order in an index, those of several are merged.
        Some(agents) => format!(
            "SELECT {columns} FROM unnest(${agents}::uuid[]) AS wanted (agent) CROSS JOIN LATERAL (
                 SELECT * FROM audit_log WHERE agent_id = wanted.agent AND position > {after}{start}
                 ORDER BY position {order} LIMIT {most}) AS found
             ORDER BY position {order} LIMIT {most}"
        ),
        None => format!(
            "SELECT {columns} FROM audit_log WHERE position > {after}{start} ORDER BY position {order} LIMIT {most}"
        ),
    };
    let after = limit.map_or("$1".to_owned(), |limit| {
        let newest = matching("position", "$1", "DESC", &format!("${limit}"));
        format!("(SELECT coalesce(min(position) - 1, {}) FROM ({newest}) AS newest)", i64::MAX)
    });
    let rows = matching(&format!("position, {COLUMNS}"), &after, "ASC", &(MAX_AUDIT_PAGE_ROWS + 1).to_string());
    let sql = format!(
        "SELECT position, {COLUMNS}, total FROM (
             SELECT *, count(*) OVER () AS total, row_number() OVER in_order AS place,
                 coalesce(sum(octet_length(action) + octet_length(rule) + coalesce(octet_length(old), 0)
                     + coalesce(octet_length(new), 0)) OVER (in_order ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
                     AS before
             FROM ({rows}) AS matching WINDOW in_order AS (ORDER BY position)) AS counted
         WHERE place <= {MAX_AUDIT_PAGE_ROWS} AND before <= {MAX_AUDIT_PAGE_BYTES} ORDER BY position"
    );
    PageQuery {
        sql,
        after: filter.after,
        since: filter.since.map(to_nanos),
        agents: filter.agents.clone(),
        limit: filter.limit.map(to_bigint),
    }
}
