//! `agent.*`: create, configure, list and destroy agents.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::method;
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

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InitParams {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The name of a permission profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    /// A duration such as `30m`; `0` is never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InitResult {
    pub agent: Agent,
    /// True when a directory that was kept came back to life.
    pub revived: bool,
    /// What a person should know, for example that no channel was made in Discord.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DestroyParams {
    pub name: String,
    /// Leave the directory in place.
    #[serde(default)]
    pub keep_files: bool,
    /// Delete the directory instead of moving it to the trash.
    #[serde(default)]
    pub purge: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DestroyResult {
    pub agent: Agent,
    /// The session that the live context was saved as.
    pub saved: Option<Session>,
    /// Where the directory is now; null when it was purged.
    pub files: Option<String>,
    /// What a person should know, for example that the directory could not be deleted and lies in the trash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListParams {
    /// Destroyed agents too.
    #[serde(default)]
    pub all: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListResult {
    pub agents: Vec<Agent>,
    /// The agent chosen with `agent.use`.
    pub chosen: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShowParams {
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "agent")]
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShowResult {
    pub agent: Agent,
    /// agent.json as it is in force.
    pub config: Map<String, Value>,
    /// Sessions saved so far.
    pub sessions: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UseParams {
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UseResult {
    pub agent: Agent,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigParams {
    pub name: String,
    /// Left out: all keys are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Left out: the key is shown. A string is read as the key's own type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigResult {
    pub agent: Agent,
    /// The key asked for, or all of them.
    pub config: Map<String, Value>,
    /// The value before, where one was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
}
