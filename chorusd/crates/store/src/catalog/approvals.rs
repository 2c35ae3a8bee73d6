//! Rows of approvals.

use chorus_base::error::Error;
use chorus_base::hex;
use chorus_catalog::{ApprovalRow, ApprovalTable, AuditDecision, CatalogRead, CatalogWrite, DecidedApproval};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::methods::approvals::{Approval, Status};
use chorus_proto::methods::permissions::Verdict;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::CatalogDb;
use super::audit::SqliteAuditLog;
use crate::sqlite::StoreResult;

const COLUMNS: &str = "id, agent_name, turn_id, call_id, action, action_hash, verdict, requester, asked_at, expires_at,
    status, not_always, decided_at, decided_by, agent_id, conversation";

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteApprovalTable {
    pub(super) db: CatalogDb,
    pub(super) audit: SqliteAuditLog,
}

impl ApprovalTable for SqliteApprovalTable {
    fn insert(&self, row: ApprovalRow) -> CatalogWrite<bool> {
        self.db.write(move |conn| insert(conn, &row))
    }

    fn record_outcome(&self, decided: DecidedApproval, row: AuditDecision) -> CatalogWrite<bool> {
        let decide = move |conn: &Connection| update_outcome(conn, &decided);
        self.audit.append_if(row, decide)
    }

    fn list_open(&self) -> CatalogRead<'_, Vec<(Approval, Uuid)>> {
        self.db.read(|conn| select_approvals(conn, "status = 'open' ORDER BY asked_at", params![]))
    }

    fn get(&self, id: String) -> CatalogRead<'_, Option<Approval>> {
        self.db
            .read(move |conn| Ok(select_approvals(conn, "id = ?1", params![id])?.pop().map(|(approval, _)| approval)))
    }

    fn list_decided(&self, agent: Option<Uuid>, most: u32) -> CatalogRead<'_, Vec<Approval>> {
        let wanted = "status <> 'open' AND (?1 IS NULL OR agent_id = ?1) ORDER BY asked_at DESC LIMIT ?2";
        let agent = agent.map(|agent| agent.as_bytes().to_vec());
        self.db.read(move |conn| {
            let found = select_approvals(conn, wanted, params![agent, most])?;
            Ok(found.into_iter().rev().map(|(approval, _)| approval).collect())
        })
    }
}

fn insert(conn: &Connection, row: &ApprovalRow) -> StoreResult<bool> {
    let asked = &row.approval;
    let verdict = Verdict {
        decision: chorus_proto::methods::permissions::Decision::Ask,
        rule: asked.rule.clone(),
        parts: asked.parts.clone(),
    };
    let verdict = serde_json::to_string(&verdict).map_err(|e| Error::internal(e.to_string()))?;
    let added = conn
        .prepare_cached(
            "INSERT INTO approvals (id, agent_id, agent_name, turn_id, call_id, action, action_hash, nonce, verdict,
                 requester, asked_at, expires_at, status, not_always, conversation)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 'open', ?13, ?14) ON CONFLICT (id) DO NOTHING",
        )?
        .execute(params![
            asked.id,
            row.agent.as_bytes(),
            asked.agent,
            asked.turn_id.as_bytes(),
            asked.call_id,
            asked.action,
            row.hash,
            row.nonce.as_bytes(),
            verdict,
            asked.requester,
            to_nanos(asked.asked_at),
            to_nanos(asked.expires_at),
            asked.not_always,
            asked.conversation,
        ])?;
    Ok(added == 1)
}

fn update_outcome(conn: &Connection, decided: &DecidedApproval) -> StoreResult<bool> {
    let changed = conn
        .prepare_cached(
            "UPDATE approvals SET status = ?2, decided_at = ?3, decided_by = ?4 WHERE id = ?1 AND status = 'open'",
        )?
        .execute(params![decided.id, decided.status.as_str(), to_nanos(decided.at), decided.by])?;
    Ok(changed == 1)
}

fn select_approvals(
    conn: &Connection,
    wanted: &str,
    values: impl rusqlite::Params,
) -> StoreResult<Vec<(Approval, Uuid)>> {
    let mut statement = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM approvals WHERE {wanted}"))?;
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((read_approval(row)?, Uuid::from_bytes(row.get(14)?)));
    }
    Ok(found)
}

fn read_approval(row: &Row<'_>) -> StoreResult<Approval> {
    let verdict: String = row.get(6)?;
    let verdict: Verdict =
        serde_json::from_str(&verdict).map_err(|e| Error::internal(format!("cannot read an approval: {e}")))?;
    Ok(Approval {
        id: row.get(0)?,
        agent: row.get(1)?,
        conversation: row.get(15)?,
        turn_id: Uuid::from_bytes(row.get(2)?),
        call_id: row.get(3)?,
        action: row.get(4)?,
        details: Vec::new(),
        hash: hex(&row.get::<_, Vec<u8>>(5)?),
        rule: verdict.rule,
        parts: verdict.parts,
        requester: row.get(7)?,
        asked_at: from_nanos(row.get(8)?),
        expires_at: from_nanos(row.get(9)?),
        status: match row.get::<_, String>(10)?.as_str() {
            "open" => Status::Open,
            "approved" => Status::Approved,
            "expired" => Status::Expired,
            _ => Status::Denied,
        },
        not_always: row.get(11)?,
        patterns: Vec::new(),
        turn_allowed: false,
        reason: None,
        directory: None,
        reach: None,
        decided_at: row.get::<_, Option<i64>>(12)?.map(from_nanos),
        decided_by: row.get(13)?,
    })
}
