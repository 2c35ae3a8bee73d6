//! The audit log: a hash chain for each node, which only its writer extends.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::{
    AuditDecision, AuditEntry, AuditFilter, AuditHead, AuditLog, CatalogRead, CatalogWrite, ChainVerifier,
};
use chorus_journal::{from_nanos, to_nanos};
use chorus_redact::Redactor;
use tokio_postgres::Row;
use uuid::Uuid;

use super::audit_pages::{COLUMNS, page_query};
use super::database::{CatalogDb, is_storable, refuse_nul, text_of_bytes};
use crate::ownership::Grant;
use crate::rows::count;
use crate::statement::{Call, call};

/// Rows that are verified in one go.
const ROWS_PER_CHUNK: i64 = 2000;

/// The log in PostgreSQL. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct PostgresAuditLog {
    pub(super) db: CatalogDb,
    pub(super) redactor: Arc<Redactor>,
}

impl PostgresAuditLog {
    /// The ownership that a decision needs: a node that was overtaken decides nothing more about the agent.
    pub(super) fn grant(&self, row: &AuditDecision) -> Result<Option<Grant>> {
        refuse_nul([&*row.agent_name, &*row.decision])?;
        if row.agent.is_nil() { Ok(None) } else { self.db.grant(row.agent) }
    }

    /// The call that appends a decision, redacted.
    pub(super) fn append_call(&self, row: AuditDecision) -> Call {
        let row = row.redacted(&self.redactor);
        call!(
            "SELECT append_audit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            self.db.node.id.clone(),
            to_nanos(row.at),
            row.agent,
            row.agent_name,
            row.turn,
            row.action.into_bytes(),
            row.decision,
            row.rule.into_bytes(),
            row.user.into_bytes(),
            row.old.map(String::into_bytes),
            row.new.map(String::into_bytes),
        )
    }

    /// Lists the nodes that have a chain, in order.
    async fn nodes(&self) -> Result<Vec<String>> {
        let sql = "WITH RECURSIVE found AS (
                 (SELECT node FROM audit_log ORDER BY node LIMIT 1)
                 UNION ALL
                 SELECT (SELECT node FROM audit_log WHERE node > found.node ORDER BY node LIMIT 1)
                 FROM found WHERE found.node IS NOT NULL
             ) SELECT node FROM found WHERE node IS NOT NULL";
        Ok(self.db.read(sql, &[]).await?.iter().map(|row| row.get(0)).collect())
    }

    /// Verifies the chain of a node, up to `known` at least.
    async fn verify_chain(&self, node: &str, known: Option<AuditHead>) -> Result<ChainVerifier> {
        let sql =
            format!("SELECT number, {COLUMNS} FROM audit_log WHERE node = $1 AND number > $2 ORDER BY number LIMIT $3");
        let mut walk = ChainVerifier::new(known);
        loop {
            let rows = self.db.read(&sql, &[&node, &walk.head.id, &ROWS_PER_CHUNK]).await?;
            for row in &rows {
                walk.check_row(&read_entry(row));
                if !walk.is_intact() {
                    return Ok(walk);
                }
            }
            if rows.is_empty() {
                return Ok(walk.finish());
            }
        }
    }
}

impl AuditLog for PostgresAuditLog {
    fn append(&self, row: AuditDecision) -> CatalogWrite<()> {
        self.db.write(self.grant(&row), vec![self.append_call(row)])
    }

    fn page(&self, filter: AuditFilter) -> CatalogRead<'_, (Vec<AuditEntry>, bool)> {
        Box::pin(async move {
            let query = page_query(&filter);
            let rows = self.db.read(&query.sql, &query.params()).await?;
            let more = rows.first().is_some_and(|row| count(row, 12) > rows.len() as u64);
            Ok((rows.iter().map(read_entry).collect(), more))
        })
    }

    fn agents_named(&self, name: String) -> CatalogRead<'_, Vec<Uuid>> {
        Box::pin(async move {
            if !is_storable(&name) {
                return Ok(Vec::new());
            }
            // Looks each id up in the index, rather than read all rows of the agent.
            let sql = "WITH RECURSIVE found AS (
                     (SELECT agent_id FROM audit_log WHERE agent_name = $1 ORDER BY agent_id LIMIT 1)
                     UNION ALL
                     SELECT (SELECT agent_id FROM audit_log WHERE agent_name = $1 AND agent_id > found.agent_id
                             ORDER BY agent_id LIMIT 1)
                     FROM found WHERE found.agent_id IS NOT NULL
                 ) SELECT agent_id FROM found WHERE agent_id IS NOT NULL";
            Ok(self.db.read(sql, &[&name]).await?.iter().map(|row| row.get(0)).collect())
        })
    }

    /// Verifies the chains of all nodes. `known` is a row of this node, and the head is that of this node.
    fn verify(&self, known: Option<AuditHead>) -> CatalogRead<'_, ChainVerifier> {
        Box::pin(async move {
            let own = &self.db.node.id;
            let mut all = self.verify_chain(own, known).await?;
            for node in self.nodes().await?.iter().filter(|node| *node != own) {
                let chain = self.verify_chain(node, None).await?;
                all.rows += chain.rows;
                let named = |(number, reason): (_, String)| (number, format!("in the log of node {node}: {reason}"));
                all.broken = all.broken.or(chain.broken.map(named));
            }
            if !all.is_intact() {
                let rows = self.db.read("SELECT count(*) FROM audit_log", &[]).await?;
                all.rows = rows.first().map_or(0, |row| count(row, 0));
            }
            Ok(all)
        })
    }
}

/// Reads a row: its number or position, and [`COLUMNS`].
fn read_entry(row: &Row) -> AuditEntry {
    let optional = |column| row.get::<_, Option<&[u8]>>(column).map(text_of_bytes);
    AuditEntry {
        id: row.get(0),
        row: AuditDecision {
            at: from_nanos(row.get(1)),
            agent: row.get(2),
            agent_name: row.get(3),
            turn: row.get(4),
            action: text_of_bytes(row.get(5)),
            decision: row.get(6),
            rule: text_of_bytes(row.get(7)),
            user: text_of_bytes(row.get(8)),
            old: optional(9),
            new: optional(10),
        },
        hash: row.get(11),
    }
}
