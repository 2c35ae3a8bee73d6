//! Questions that the previous daemon left open.

use chorus_base::error::Result;
use chorus_catalog::{ApprovalTable, AuditDecision, DecidedApproval};
use chorus_proto::methods::approvals::{Approval, Status};
use jiff::Timestamp;
use uuid::Uuid;

/// Denies approvals that are open in the table although no turn waits for them any more, of the agents that `has` is true
/// of.
pub(super) async fn deny_all(table: &dyn ApprovalTable, has: impl Fn(Uuid) -> bool, now: Timestamp) -> Result<()> {
    let mut open = table.list_open().await?;
    open.retain(|(_, agent)| has(*agent));
    let count = open.len();
    for (approval, agent) in open {
        deny(table, (agent, vec![approval]), now, "the daemon restarted").await?;
    }
    if count > 0 {
        tracing::info!(count, "denied the approvals that were pending before the start");
    }
    Ok(())
}

/// Denies open approvals of an agent. `why` is the rule in the audit log.
pub(crate) async fn deny(
    table: &dyn ApprovalTable,
    (agent, open): (Uuid, Vec<Approval>),
    now: Timestamp,
    why: &str,
) -> Result<()> {
    for approval in open {
        let decided = DecidedApproval { id: approval.id, status: Status::Denied, at: now, by: None };
        let row = AuditDecision {
            at: now,
            agent,
            agent_name: approval.agent,
            turn: Some(approval.turn_id),
            action: approval.action,
            decision: "withdrawn".into(),
            rule: why.into(),
            user: "nobody".into(),
            old: None,
            new: None,
        };
        table.record_outcome(decided, row).await?;
    }
    Ok(())
}
