//! Selects the agent to name in a request: `--agent`, else `$CHORUS_AGENT`, else the agent whose directory contains the
//! current one. If none applies the request names no agent, and the daemon takes the one chosen with `agent use` or the
//! only one that exists. The daemon of another machine has no directories here, and `$CHORUS_AGENT` is meant for it only if `$CHORUS_HOST`
//! names it.

use std::path::Path;

use crate::app::App;
use crate::host_select::has_own_variables;

/// Returns the agent to name in a request.
#[must_use]
pub fn selected_agent(app: &App) -> Option<String> {
    named_agent(app).or_else(|| if app.is_remote() { None } else { from_current_dir(&app.paths().ok()?.home) })
}

/// Returns the agent that the user named with --agent or $CHORUS_AGENT.
#[must_use]
pub fn named_agent(app: &App) -> Option<String> {
    app.global.agent.clone().or_else(|| from_environment().filter(|_| has_own_variables(app)))
}

fn from_environment() -> Option<String> {
    std::env::var("CHORUS_AGENT").ok().filter(|name| !name.is_empty())
}

fn from_current_dir(home: &Path) -> Option<String> {
    let agents = home.join("agents").canonicalize().ok()?;
    let current = std::env::current_dir().ok()?;
    agent_of_dir(&agents, &current)
}

/// Returns the agent under `agents` whose directory is `current` or contains it.
fn agent_of_dir(agents: &Path, current: &Path) -> Option<String> {
    let below = current.strip_prefix(agents).ok()?;
    below.components().next()?.as_os_str().to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_inside_an_agents_names_it() {
        let holding = |current| agent_of_dir(Path::new("/h/agents"), Path::new(current));
        assert_eq!(holding("/h/agents/atlas/workspace/src").as_deref(), Some("atlas"));
        assert_eq!(holding("/h/agents/atlas").as_deref(), Some("atlas"));
        assert_eq!(holding("/h/agents"), None);
        assert_eq!(holding("/h/agents-of-others/atlas"), None);
    }
}
