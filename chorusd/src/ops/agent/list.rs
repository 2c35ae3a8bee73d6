//! `agent.list`.

use chorus_proto::AgentStatus;
use chorus_proto::methods::agent::{ListParams, ListResult};

use super::refresh_all;
use crate::failure::Result;
use crate::ops::{Ops, view};

/// Agents by name; with `all`, destroyed ones after them.
///
/// # Errors
/// A database that cannot be read.
pub async fn list(ops: &Ops, params: ListParams) -> Result<ListResult> {
    let entries = refresh_all(ops, ops.directory.all()).await?;
    let mut agents = view::agents(ops, &entries).await?;
    if params.all {
        let rows = ops.store.catalog.agents(true).await?;
        agents.extend(
            rows.iter().filter(|row| row.status == AgentStatus::Destroyed).map(|row| view::destroyed(ops, row)),
        );
    }
    Ok(ListResult { agents, chosen: ops.directory.chosen().map(|entry| entry.facts.name.clone()) })
}
