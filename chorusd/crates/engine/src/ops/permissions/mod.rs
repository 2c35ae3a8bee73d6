//! The operations `permissions.*`.

pub mod check;
pub mod list;
pub mod remove_rule;
pub mod rules;
pub mod show;

use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_base::error::{Error, Result};
use chorus_permissions::{Profile, Profiles};
use chorus_proto::ErrorKind;
use chorus_proto::methods::permissions::ProfileInfo;

use crate::agent::agent_index::AgentIndex;

/// Returns the profile of an agent, or `invalid_config` if its permissions cannot be used.
pub fn usable_profile(settings: &AgentSettings) -> Result<&Arc<Profile>> {
    settings.profile.as_ref().map_err(|problem| {
        let name = &settings.name;
        Error::new(ErrorKind::InvalidConfig, format!("{name} has no valid permissions: its agent.json {problem}"))
            .hint(format!("repair it, or use a preset: chorusctl agent config {name} permissions standard"))
    })
}

/// Converts a profile into its form in lists.
fn profile_info(agents: &AgentIndex, name: &str, profile: &Profile) -> ProfileInfo {
    let agents = agents.all();
    let agents = agents.iter().filter(|agent| agent.permissions.as_str() == Some(name));
    let spec = profile.spec();
    ProfileInfo {
        name: name.to_owned(),
        preset: Profiles::is_preset(name),
        default: spec.default,
        bash: spec.bash,
        network: spec.network,
        agents: agents.map(|agent| agent.settings.name.clone()).collect(),
    }
}
