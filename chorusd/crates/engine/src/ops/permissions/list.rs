//! The operation `permissions.list`.

use chorus_base::error::Result;
use chorus_proto::methods::permissions::{ListParams, ListResult};

use super::profile_info;
use crate::ops::agent::AgentResolver;
use crate::ops::settings::EffectiveConfig;

/// Lists the presets and the configured profiles, with the agents that use them.
pub async fn list(agents: &AgentResolver, config: &EffectiveConfig, _: ListParams) -> Result<ListResult> {
    agents.all().await?;
    let config = config.current();
    let profiles = config.profiles.iter().map(|(name, profile)| profile_info(&agents.index, name, profile)).collect();
    Ok(ListResult { profiles })
}
