//! `settings.*`: the effective configuration and the defaults of agents.

use serde_json::Value;

use super::{method, wire};

method!(
    /// Lists every key of the configuration with its value and where the value comes from. Shows no secrets: for a
    /// provider's key, only where it is found.
    Show = "settings.show", ShowParams => ShowResult
);
method!(
    /// Sets a default of all agents, immediately and permanently. An empty value removes it.
    Set = "settings.set", SetParams => SetResult
);

#[wire(params, PartialEq, Eq)]
pub struct ShowParams {}

#[wire(PartialEq)]
pub struct ShowResult {
    /// Keys that there always are, then those of tables that the user names.
    pub settings: Vec<Setting>,
}

/// One key of the configuration.
#[wire(PartialEq)]
pub struct Setting {
    /// With its table, for example `defaults.idle_timeout`.
    pub key: String,
    /// As it would be written in config.toml; null: nothing.
    pub value: Value,
    pub from: From,
    /// The file, or the variable of the environment.
    #[omit_empty]
    pub place: Option<String>,
}

/// Where a value comes from.
#[wire(Copy, PartialEq, Eq)]
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

#[wire(params, PartialEq)]
pub struct SetParams {
    /// `default_model`, `permissions` or `idle_timeout`.
    pub key: String,
    /// A text; an empty one takes the setting back.
    pub value: Value,
}

#[wire(PartialEq)]
pub struct SetResult {
    /// What is in force now.
    pub setting: Setting,
    /// What was set before; null: nothing was.
    pub old: Option<String>,
    /// The variable of the environment that goes before it: the setting is kept, and has no effect while that is set.
    pub overridden_by: Option<String>,
}
