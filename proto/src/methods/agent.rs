//! `agent.*`: create, configure, list and destroy agents.

use serde_json::{Map, Value};

use super::{method, wire};
use crate::agent::Agent;
use crate::session::Session;

method!(
    /// Creates an agent, or revives one that `agent destroy --keep-files` left.
    Init = "agent.init", InitParams => InitResult
);
method!(
    /// Saves the live context and removes the agent.
    Destroy = "agent.destroy", DestroyParams => DestroyResult
);
method!(List = "agent.list", ListParams => ListResult);
method!(Show = "agent.show", ShowParams => ShowResult);
method!(
    /// Chooses the agent for requests that name none.
    Use = "agent.use", UseParams => UseResult
);
method!(
    /// Reads or sets one key of agent.json; setting `name` renames the agent.
    Config = "agent.config", ConfigParams => ConfigResult
);

#[wire(params)]
pub struct InitParams {
    pub name: String,
    pub system_prompt: Option<String>,
    pub model: Option<String>,
    /// The name of a permission profile.
    pub permissions: Option<String>,
    /// A duration such as `30m`; `0` means never.
    pub idle_timeout: Option<String>,
}

#[wire(PartialEq)]
pub struct InitResult {
    pub agent: Agent,
    /// True if the agent was restored from kept files.
    pub revived: bool,
    /// Warnings for people, for example that no Discord channel was created.
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct DestroyParams {
    pub name: String,
    /// Keep the directory in place.
    #[serde(default)]
    pub keep_files: bool,
    /// Delete the directory instead of moving it to the trash.
    #[serde(default)]
    pub purge: bool,
}

#[wire(PartialEq)]
pub struct DestroyResult {
    pub agent: Agent,
    /// The session that the live context was saved as.
    pub saved: Option<Session>,
    /// The new path of the directory; null if it was purged.
    pub files: Option<String>,
    /// Warnings for people, for example that the directory could not be deleted and is in the trash.
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct ListParams {
    /// Include deleted agents.
    #[serde(default)]
    pub all: bool,
    /// Only the agents of this node of the cluster.
    pub node: Option<String>,
}

#[wire(PartialEq)]
pub struct ListResult {
    pub agents: Vec<Agent>,
    /// The agent selected with `agent.use`.
    pub chosen: Option<String>,
}

#[wire(params)]
pub struct ShowParams {
    #[serde(alias = "agent")]
    pub name: Option<String>,
}

#[wire(PartialEq)]
pub struct ShowResult {
    pub agent: Agent,
    /// The effective agent.json.
    pub config: Map<String, Value>,
    /// Number of saved sessions.
    pub sessions: u64,
}

#[wire(params)]
pub struct UseParams {
    pub name: String,
}

#[wire(PartialEq)]
pub struct UseResult {
    pub agent: Agent,
}

#[wire(params)]
pub struct ConfigParams {
    pub name: String,
    /// If missing, all keys are returned.
    pub key: Option<String>,
    /// If missing, the key is returned. A string is converted to the type of the key.
    pub value: Option<Value>,
}

#[wire(PartialEq)]
pub struct ConfigResult {
    pub agent: Agent,
    /// The requested key, or all of them.
    pub config: Map<String, Value>,
    /// The previous value, if one was set.
    #[omit_empty]
    pub old: Option<Value>,
}
