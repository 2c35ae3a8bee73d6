//! `approvals.*`.

pub mod approve;
pub mod deny;
pub mod list;

use chorus_proto::methods::approvals::Approval;

use crate::agent::agent_index::AgentEntry;
use crate::error::Result;
use crate::ops::Ops;

/// The question of that id as it stands, without secrets.
///
/// # Errors
/// A database that cannot be read.
pub async fn get_approval(ops: &Ops, id: &str) -> Result<Option<Approval>> {
    ops.store.catalog.approval(id.to_owned()).await
}

/// Denies what is asked of an agent whose permissions are no longer those of `before`: it was asked under other rules.
pub async fn deny_outdated(ops: &Ops, before: &AgentEntry) {
    let now = ops.agents.by_id(before.settings.id);
    if now.is_some_and(|now| now.permissions != before.permissions) {
        ops.registry.services.approvals.deny_open(before.settings.id).await;
    }
}
