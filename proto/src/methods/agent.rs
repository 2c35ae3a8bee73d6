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
    /// A duration such as `30m`; `0` is never.
    pub idle_timeout: Option<String>,
}

#[wire(PartialEq)]
pub struct InitResult {
    pub agent: Agent,
    /// True when a directory that was kept came back to life.
    pub revived: bool,
    /// What a person should know, for example that no channel was made in Discord.
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct DestroyParams {
    pub name: String,
    /// Leave the directory in place.
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
    /// Where the directory is now; null when it was purged.
    pub files: Option<String>,
    /// What a person should know, for example that the directory could not be deleted and lies in the trash.
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct ListParams {
    /// Destroyed agents too.
    #[serde(default)]
    pub all: bool,
}

#[wire(PartialEq)]
pub struct ListResult {
    pub agents: Vec<Agent>,
    /// The agent chosen with `agent.use`.
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
    /// agent.json as it is in force.
    pub config: Map<String, Value>,
    /// Sessions saved so far.
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
    /// Left out: all keys are shown.
    pub key: Option<String>,
    /// Left out: the key is shown. A string is read as the key's own type.
    pub value: Option<Value>,
}

#[wire(PartialEq)]
pub struct ConfigResult {
    pub agent: Agent,
    /// The key asked for, or all of them.
    pub config: Map<String, Value>,
    /// The value before, where one was set.
    #[omit_empty]
    pub old: Option<Value>,
}
