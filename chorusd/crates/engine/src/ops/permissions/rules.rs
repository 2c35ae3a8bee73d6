//! The operation `permissions.rules`.

use chorus_base::error::Result;
use chorus_proto::methods::permissions::{RulesParams, RulesResult};

use super::usable_profile;
use crate::ops::agent::AgentResolver;

/// Lists the rules of an agent.
///
/// # Errors
/// `agent_not_found`; `invalid_config` if its permissions cannot be used.
pub async fn rules(agents: &AgentResolver, params: RulesParams) -> Result<RulesResult> {
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let rules = usable_profile(&agent.settings)?.agent_rules().cloned().collect();
    Ok(RulesResult { agent: agent.settings.name.clone(), rules })
}
