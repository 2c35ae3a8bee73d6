//! Rows of approvals.

use chorus_base::error::{Error, Result};
use chorus_base::hex;
use chorus_catalog::{ApprovalRow, ApprovalTable, AuditDecision, CatalogRead, CatalogWrite, DecidedApproval};
use chorus_journal::{from_nanos, to_nanos};
use chorus_proto::methods::approvals::{Approval, Status};
use chorus_proto::methods::permissions::{Decision, Verdict};
use tokio_postgres::Row;
use uuid::Uuid;

use super::audit::PostgresAuditLog;
use super::database::{CatalogDb, is_storable, only, refuse_nul, text_of_bytes};
use crate::param::Param;
use crate::statement::{Call, call};

const COLUMNS: &str = "id, agent_name, turn_id, call_id, action, action_hash, verdict, requester, asked_at, expires_at,
    status, not_always, decided_at, decided_by, agent_id, conversation";

/// The table in PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresApprovalTable {
    pub(super) db: CatalogDb,
    pub(super) audit: PostgresAuditLog,
}

impl ApprovalTable for PostgresApprovalTable {
    fn insert(&self, row: ApprovalRow) -> CatalogWrite<bool> {
        let insert = match insert_call(&row) {
            Ok(insert) => insert,
            Err(failure) => return Box::pin(async move { Err(failure) }),
        };
        let confirm = call!("SELECT FROM approvals WHERE id = $1 AND nonce = $2", row.approval.id, row.nonce);
        self.db.write_and_read(self.db.grant(row.agent), vec![insert], confirm, |rows| Ok(!rows.is_empty()))
    }

    fn record_outcome(&self, decided: DecidedApproval, row: AuditDecision) -> CatalogWrite<bool> {
        let texts = [decided.id.as_str()].into_iter().chain(decided.by.as_deref());
        let grant = refuse_nul(texts).and_then(|()| self.audit.grant(&row));
        let write = Uuid::new_v4();
        let confirm = call!(
            "SELECT EXISTS (SELECT FROM approvals WHERE id = $1 AND decided_write = $2)",
            decided.id.clone(),
            write,
        );
        let calls = vec![self.decide_call(decided, write, row)];
        self.db.write_and_read(grant, calls, confirm, |rows| Ok(only(rows)?.get(0)))
    }

    /// Lists those of the agents that this process owns: others are decided by their owners.
    fn list_open(&self) -> CatalogRead<'_, Vec<(Approval, Uuid)>> {
        Box::pin(async move {
            let wanted = "status = 'open' AND agent_id = ANY ($1) ORDER BY asked_at, id";
            self.select(wanted, &[&self.db.owned_agents()]).await
        })
    }

    fn list_open_of(&self, agent: Uuid) -> CatalogRead<'_, Vec<Approval>> {
        Box::pin(async move {
            let wanted = "status = 'open' AND agent_id = $1 ORDER BY asked_at, id";
            Ok(self.select(wanted, &[&agent]).await?.into_iter().map(|(approval, _)| approval).collect())
        })
    }

    fn agent_of_open(&self, id: String) -> CatalogRead<'_, Option<Uuid>> {
        Box::pin(async move {
            if !is_storable(&id) {
                return Ok(None);
            }
            Ok(self.select("status = 'open' AND id = $1", &[&id]).await?.pop().map(|(_, agent)| agent))
        })
    }

    fn list_open_elsewhere(&self) -> CatalogRead<'_, Vec<Approval>> {
        Box::pin(async move {
            let wanted = "status = 'open' AND NOT (agent_id = ANY ($1)) ORDER BY asked_at, id LIMIT 1000";
            let found = self.select(wanted, &[&self.db.owned_agents()]).await?;
            Ok(found.into_iter().map(|(approval, _)| approval).collect())
        })
    }

    fn get(&self, id: String) -> CatalogRead<'_, Option<Approval>> {
        Box::pin(async move {
            if !is_storable(&id) {
                return Ok(None);
            }
            Ok(self.select("id = $1", &[&id]).await?.pop().map(|(approval, _)| approval))
        })
    }

    fn list_decided(&self, agent: Option<Uuid>, most: u32) -> CatalogRead<'_, Vec<Approval>> {
        Box::pin(async move {
            let most = i64::from(most);
            let found = match agent {
                Some(agent) => {
                    let wanted = "status <> 'open' AND agent_id = $1 ORDER BY asked_at DESC, id LIMIT $2";
                    self.select(wanted, &[&agent, &most]).await?
                }
                None => self.select("status <> 'open' ORDER BY asked_at DESC, id LIMIT $1", &[&most]).await?,
            };
            Ok(found.into_iter().rev().map(|(approval, _)| approval).collect())
        })
    }
}

impl PostgresApprovalTable {
    async fn select(&self, wanted: &str, params: &[&dyn Param]) -> Result<Vec<(Approval, Uuid)>> {
        let sql = format!("SELECT {COLUMNS} FROM approvals WHERE {wanted}");
        let rows = self.db.read(&sql, params).await?;
        rows.iter().map(|row| Ok((read_approval(row)?, row.get(14)))).collect()
    }

    /// Records an outcome and its row of the audit log, redacted. `write` identifies the request.
    fn decide_call(&self, decided: DecidedApproval, write: Uuid, row: AuditDecision) -> Call {
        let row = row.redacted(&self.audit.redactor);
        call!(
            "SELECT decide_approval($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
            decided.id,
            decided.status.as_str().to_owned(),
            to_nanos(decided.at),
            decided.by,
            write,
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
}

/// Inserts an open approval; returns a row if its id is new.
fn insert_call(row: &ApprovalRow) -> Result<Call> {
    let asked = row.approval.clone();
    let verdict = Verdict { decision: Decision::Ask, rule: asked.rule, parts: asked.parts };
    let verdict = serde_json::to_string(&verdict).map_err(|e| Error::internal(e.to_string()))?;
    let optional = [&asked.not_always, &asked.conversation].into_iter().flatten();
    refuse_nul(optional.chain([&asked.id, &asked.agent, &asked.call_id, &asked.requester]).map(String::as_str))?;
    Ok(call!(
        "INSERT INTO approvals (id, agent_id, agent_name, turn_id, call_id, action, action_hash, nonce, verdict,
             requester, asked_at, expires_at, status, not_always, conversation)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'open', $13, $14) ON CONFLICT (id) DO NOTHING
         RETURNING 1",
        asked.id,
        row.agent,
        asked.agent,
        asked.turn_id,
        asked.call_id,
        asked.action.into_bytes(),
        row.hash.to_vec(),
        row.nonce,
        verdict,
        asked.requester,
        to_nanos(asked.asked_at),
        to_nanos(asked.expires_at),
        asked.not_always,
        asked.conversation,
    ))
}

fn read_approval(row: &Row) -> Result<Approval> {
    let verdict: Verdict =
        serde_json::from_str(row.get(6)).map_err(|e| Error::internal(format!("cannot read an approval: {e}")))?;
    Ok(Approval {
        id: row.get(0),
        agent: row.get(1),
        conversation: row.get(15),
        turn_id: row.get(2),
        call_id: row.get(3),
        action: text_of_bytes(row.get(4)),
        details: Vec::new(),
        hash: hex(row.get::<_, &[u8]>(5)),
        rule: verdict.rule,
        parts: verdict.parts,
        requester: row.get(7),
        asked_at: from_nanos(row.get(8)),
        expires_at: from_nanos(row.get(9)),
        status: match row.get(10) {
            "open" => Status::Open,
            "approved" => Status::Approved,
            "expired" => Status::Expired,
            _ => Status::Denied,
        },
        not_always: row.get(11),
        patterns: Vec::new(),
        turn_allowed: false,
        reason: None,
        directory: None,
        reach: None,
        decided_at: row.get::<_, Option<i64>>(12).map(from_nanos),
        decided_by: row.get(13),
    })
}
