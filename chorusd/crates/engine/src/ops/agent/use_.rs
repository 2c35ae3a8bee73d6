//! The operation `agent.use`.

use chorus_base::error::Result;
use chorus_proto::methods::agent::{UseParams, UseResult};

use crate::ops::{Ops, resolve_agent, wire_types};

/// The setting that stores the chosen agent across restarts.
pub const CHOSEN_AGENT: &str = "chosen_agent";

/// Chooses the agent for requests that name none.
pub async fn use_(ops: &Ops, params: UseParams) -> Result<UseResult> {
    let entry = resolve_agent::agent(ops, Some(&params.name)).await?;
    ops.store.catalog.settings.set(CHOSEN_AGENT, Some(entry.settings.id.to_string())).await?;
    ops.agents.select(Some(entry.settings.id));
    Ok(UseResult { agent: wire_types::agent(ops, &entry).await? })
}
