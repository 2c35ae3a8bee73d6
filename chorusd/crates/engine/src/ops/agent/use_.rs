//! The operation `agent.use`.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::SettingTable;
use chorus_proto::methods::agent::{UseParams, UseResult};

use super::{AgentDescriber, AgentResolver};
use crate::agent::agent_index::AgentIndex;

/// The setting that stores the chosen agent across restarts.
pub const CHOSEN_AGENT: &str = "chosen_agent";

/// Chooses the agent for requests that name none.
pub async fn use_(
    resolver: &AgentResolver,
    describer: &AgentDescriber,
    settings: &Arc<dyn SettingTable>,
    index: &AgentIndex,
    params: UseParams,
) -> Result<UseResult> {
    let entry = resolver.resolve(Some(&params.name)).await?;
    settings.set(CHOSEN_AGENT, Some(entry.settings.id.to_string())).await?;
    index.select(Some(entry.settings.id));
    Ok(UseResult { agent: describer.describe(&entry).await? })
}
