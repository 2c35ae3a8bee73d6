//! `approvals.list`.

use chorus_proto::methods::approvals::{ListParams, ListResult};

use crate::failure::Result;
use crate::ops::{Ops, select};

/// Decided ones that are told, too.
const DECIDED: u32 = 100;

/// What waits for an answer; with `all` also what was decided of late.
///
/// # Errors
/// `agent_not_found`, or a database that cannot be read.
pub async fn list(ops: &Ops, params: ListParams) -> Result<ListResult> {
    let agent = match &params.agent {
        Some(name) => Some(select::agent(ops, Some(name)).await?.facts.id),
        None => None,
    };
    // Open ones after the others: one that is decided in between is told once.
    let mut approvals =
        if params.all { ops.store.catalog.decided_approvals(agent, DECIDED).await? } else { Vec::new() };
    let open = ops.registry.world.approvals.open(agent);
    approvals.retain(|decided| open.iter().all(|open| open.id != decided.id));
    approvals.extend(open);
    Ok(ListResult { approvals })
}
