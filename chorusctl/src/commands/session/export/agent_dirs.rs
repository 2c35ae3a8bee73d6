//! Names the directory of each agent in an export of all agents: the agent's current name.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use chorus_proto::AgentStatus;
use chorus_proto::methods::agent::{List, ListParams};

use super::selected_session::ExportSession;
use crate::app::App;
use crate::error::Error;

/// Directory names by agent id. If a destroyed agent's name is in use again, its directory gets a suffix from its id.
#[derive(Debug)]
pub(super) struct AgentDirs(HashMap<String, String>);

impl AgentDirs {
    /// Fetches the agents, including destroyed ones, and assigns the directories.
    pub(super) fn fetch(app: &mut App) -> Result<Self, Error> {
        let mut agents = app.call::<List>(&ListParams { all: true, node: None })?.agents;
        // The active agent gets the plain name, otherwise the newest.
        agents.sort_by_key(|agent| (agent.status != AgentStatus::Active, std::cmp::Reverse(agent.created_at)));
        let mut taken = HashSet::new();
        let folders = agents.into_iter().map(|agent| {
            let id = agent.id.to_string();
            let short = id.get(..8).unwrap_or_default();
            let folder = if taken.insert(agent.name.clone()) { agent.name } else { format!("{}_{short}", agent.name) };
            (id, folder)
        });
        Ok(Self(folders.collect()))
    }

    /// Returns the directory for `session`.
    ///
    /// # Errors
    /// The agent's name is no valid directory name.
    pub(super) fn dir_for(&self, session: &ExportSession) -> Result<PathBuf, Error> {
        let known = self.0.get(&session.agent_id.to_string());
        let name = known.unwrap_or(&session.agent_name);
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Err(Error::failed(format!("{name:?} is not a valid directory name")));
        }
        Ok(name.into())
    }
}
