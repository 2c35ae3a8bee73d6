//! The operation `agent.use`.

use chorus_base::error::Result;
use chorus_proto::methods::agent::{UseParams, UseResult};
use chorus_store::catalog::SettingTable;

use super::{AgentDescriber, AgentResolver};
use crate::agent::agent_index::AgentIndex;

/// The setting that stores the chosen agent across restarts.
pub const CHOSEN_AGENT: &str = "chosen_agent";

/// Chooses the agent for requests that name none.
pub async fn use_(
    resolver: &AgentResolver,
    describer: &AgentDescriber,
    settings: &SettingTable,
    index: &AgentIndex,
    params: UseParams,
) -> Result<UseResult> {
    let entry = resolver.resolve(Some(&params.name)).await?;
    settings.set(CHOSEN_AGENT, Some(entry.settings.id.to_string())).await?;
    index.select(Some(entry.settings.id));
    Ok(UseResult { agent: describer.describe(&entry).await? })
}
