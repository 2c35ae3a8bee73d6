//! The operation `permissions.show`.

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_proto::methods::permissions::{ShowParams, ShowResult};

use super::profile_info;
use crate::ops::agent::AgentResolver;
use crate::ops::settings::EffectiveConfig;

/// Shows one profile.
pub async fn show(agents: &AgentResolver, config: &EffectiveConfig, params: ShowParams) -> Result<ShowResult> {
    let config = config.current();
    let profiles = &config.profiles;
    let Some(profile) = profiles.get(&params.name) else {
        let shown: String = params.name.chars().take(80).collect();
        let failure = Error::new(ErrorKind::NotFound, format!("unknown permission profile {shown:?}"));
        if agents.index.by_name(&params.name).is_some() {
            return Err(failure
                .hint(format!("to see an agent's permissions: chorusctl agent config {} permissions", params.name)));
        }
        let names: Vec<&str> = profiles.iter().map(|(name, _)| name).collect();
        return Err(match closest_match(&params.name, names.iter().copied()) {
            Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
            None => failure.hint(format!("profiles: {}", names.join(", "))),
        });
    };
    agents.all().await?;
    Ok(ShowResult { info: profile_info(&agents.index, &params.name, profile), profile: profile.spec().to_json() })
}
