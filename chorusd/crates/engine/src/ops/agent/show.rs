//! The operation `agent.show`.

use chorus_base::error::Result;
use chorus_proto::methods::agent::{ShowParams, ShowResult};
use chorus_store::catalog::AgentTable;

use super::config::effective_config;
use super::{AgentDescriber, AgentResolver};
use crate::ops::settings::EffectiveConfig;

/// Shows one agent with its configuration.
pub async fn show(
    agents: &AgentResolver,
    describer: &AgentDescriber,
    table: &AgentTable,
    defaults: &EffectiveConfig,
    params: ShowParams,
) -> Result<ShowResult> {
    let entry = agents.resolve(params.name.as_deref()).await?;
    let (config, sessions) = effective_config(table, defaults, &entry).await?;
    Ok(ShowResult { agent: describer.describe(&entry).await?, config: config.map().clone(), sessions })
}
