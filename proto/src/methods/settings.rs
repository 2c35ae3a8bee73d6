//! `settings.*`: the effective configuration and the defaults of agents.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::method;

method!(
    /// Lists every key of the configuration with its value and where the value comes from. Shows no secrets: for a
    /// provider's key, only where it is found.
    Show = "settings.show", ShowParams => ShowResult
);
method!(
    /// Sets a default of all agents, immediately and permanently. An empty value removes it.
    Set = "settings.set", SetParams => SetResult
);

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShowParams {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShowResult {
    /// Keys that there always are, then those of tables that the user names.
    pub settings: Vec<Setting>,
}

/// One key of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// With its table, for example `defaults.idle_timeout`.
    pub key: String,
    /// As it would be written in config.toml; null: nothing.
    pub value: Value,
    pub from: From,
    /// The file, or the variable of the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum From {
    Default,
    File,
    /// `settings set`.
    Settings,
    Environment,
}

impl From {
    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Settings => "settings",
            Self::Environment => "environment",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetParams {
    /// `default_model`, `permissions` or `idle_timeout`.
    pub key: String,
    /// A text; an empty one takes the setting back.
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetResult {
    /// What is in force now.
    pub setting: Setting,
    /// What was set before; null: nothing was.
    pub old: Option<String>,
    /// The variable of the environment that goes before it: the setting is kept, and has no effect while that is set.
    pub overridden_by: Option<String>,
}
