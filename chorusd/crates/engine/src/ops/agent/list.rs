//! The operation `agent.list`.

use chorus_base::error::Result;
use chorus_proto::AgentStatus;
use chorus_proto::methods::agent::{ListParams, ListResult};

use crate::ops::{Ops, wire_types};

/// Lists agents by name; with `all`, destroyed ones after them.
pub async fn list(ops: &Ops, params: ListParams) -> Result<ListResult> {
    let entries = ops.agent_resolver.all().await?;
    let mut agents = wire_types::agents(ops, &entries).await?;
    if params.all {
        let rows = ops.store.catalog.agents.list(true).await?;
        agents.extend(
            rows.iter()
                .filter(|row| row.status == AgentStatus::Destroyed)
                .map(|row| wire_types::destroyed_agent(ops, row)),
        );
    }
    Ok(ListResult { agents, chosen: ops.agents.selected().map(|entry| entry.settings.name.clone()) })
}
