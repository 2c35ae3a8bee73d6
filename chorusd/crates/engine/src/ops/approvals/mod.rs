//! The operations `approvals.*`.

pub mod approve;
pub mod deny;
pub mod list;

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::ApprovalTable;
use chorus_proto::methods::approvals::Approval;
use futures_util::future::BoxFuture;

use crate::agent::agent_index::{AgentEntry, AgentIndex};
use crate::approvals::{Approvals, normalize_id};
use crate::ops::agent::AgentResolver;

/// Makes sure that this daemon has the agent of an open approval, which it would wait for.
///
/// # Errors
/// [`chorus_base::error::Error::elsewhere`] if another daemon has it.
async fn ensure_agent_here(agents: &AgentResolver, approvals: &Approvals, id: &str) -> Result<()> {
    let store = &agents.claims.store;
    if store.ownership.is_none() || approvals.agent_of(id).is_some() {
        return Ok(());
    }
    match store.catalog.approvals.agent_of_open(normalize_id(id)).await? {
        Some(agent) => agents.claims.ensure_by_id(agent).await,
        None => Ok(()),
    }
}

/// Returns the current state of an approval, redacted.
pub async fn get_approval(table: &Arc<dyn ApprovalTable>, id: &str) -> Result<Option<Approval>> {
    table.get(id.to_owned()).await
}

/// Denies the open approvals of an agent whose permissions have changed since `before`, because they were requested
/// under other rules.
pub fn deny_outdated<'a>(
    agents: &'a AgentIndex,
    approvals: &'a Approvals,
    before: &'a AgentEntry,
) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        let now = agents.by_id(before.settings.id);
        if now.is_some_and(|now| now.permissions != before.permissions) {
            approvals.deny_open(before.settings.id).await;
        }
    })
}
