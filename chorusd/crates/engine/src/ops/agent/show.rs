//! The operation `agent.show`.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::AgentTable;
use chorus_proto::methods::agent::{ShowParams, ShowResult};

use super::config::effective_config;
use super::{AgentDescriber, AgentResolver};
use crate::ops::settings::EffectiveConfig;

/// Shows one agent with its configuration.
pub async fn show(
    agents: &AgentResolver,
    describer: &AgentDescriber,
    table: &Arc<dyn AgentTable>,
    defaults: &EffectiveConfig,
    params: ShowParams,
) -> Result<ShowResult> {
    let entry = agents.resolve(params.name.as_deref()).await?;
    let (config, sessions) = effective_config(table, defaults, &entry).await?;
    Ok(ShowResult { agent: describer.describe(&entry).await?, config: config.map().clone(), sessions })
}
