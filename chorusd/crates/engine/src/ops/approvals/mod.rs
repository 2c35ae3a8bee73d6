//! The operations `approvals.*`.

pub mod approve;
pub mod deny;
pub mod list;

use chorus_base::error::Result;
use chorus_proto::methods::approvals::Approval;

use crate::agent::agent_index::AgentEntry;
use crate::ops::Ops;

/// Returns the current state of an approval, redacted.
pub async fn get_approval(ops: &Ops, id: &str) -> Result<Option<Approval>> {
    ops.store.catalog.approvals.get(id.to_owned()).await
}

/// Denies the open approvals of an agent whose permissions have changed since `before`, because they were requested
/// under other rules.
pub async fn deny_outdated(ops: &Ops, before: &AgentEntry) {
    let now = ops.agents.by_id(before.settings.id);
    if now.is_some_and(|now| now.permissions != before.permissions) {
        ops.approvals.deny_open(before.settings.id).await;
    }
}
