//! Which directory an agent's sessions go into: its name, as it is called today.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use chorus_proto::AgentStatus;
use chorus_proto::methods::agent::{List, ListParams};

use super::export_session::ExportSession;
use crate::app::App;
use crate::error::Error;

/// Directories by the agent's id. An agent that was destroyed leaves its name to whoever has it now.
#[derive(Debug)]
pub struct AgentDirs(HashMap<String, String>);

impl AgentDirs {
    /// Asks which agents there are, destroyed ones too.
    ///
    /// # Errors
    /// What the daemon says.
    pub fn fetch(app: &mut App) -> Result<Self, Error> {
        let mut agents = app.call::<List>(&ListParams { all: true })?.agents;
        // The active one has the name, else the newest.
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

    /// The directory for `session`.
    ///
    /// # Errors
    /// A name that would lead elsewhere.
    pub fn dir_for(&self, session: &ExportSession) -> Result<PathBuf, Error> {
        let known = self.0.get(&session.agent_id.to_string());
        let name = known.unwrap_or(&session.agent_name);
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Err(Error::failed(format!("{name:?} cannot be the name of a directory")));
        }
        Ok(name.into())
    }
}
