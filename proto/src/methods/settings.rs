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
    /// The fixed keys, then those of tables with names chosen by the user.
    pub settings: Vec<Setting>,
    /// The configuration file.
    #[omit_empty]
    pub file: Option<ConfigFile>,
    /// Keys that have other values in the file, which apply after a restart of the daemon.
    #[omit_empty]
    pub restart: Vec<String>,
    /// Why the daemon could not use the file as it is now; it has the values that it read before.
    #[omit_empty]
    pub problem: Option<String>,
}

/// The configuration file as the daemon last read it.
#[wire(PartialEq, Eq)]
pub struct ConfigFile {
    pub path: String,
    pub exists: bool,
}

/// One key of the configuration.
#[wire(PartialEq)]
pub struct Setting {
    /// With its table, for example `defaults.idle_timeout`.
    pub key: String,
    /// As in config.toml; null if not set.
    pub value: Value,
    pub from: From,
    /// The file or the environment variable.
    #[omit_empty]
    pub place: Option<String>,
    /// The line in the file, counted from 1.
    #[omit_empty]
    pub line: Option<u64>,
}

/// Source of a value.
#[wire(Copy, PartialEq, Eq)]
pub enum From {
    Default,
    File,
    /// Set with `settings set`.
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
    /// The value; an empty one removes the setting.
    pub value: Value,
    /// The command that sets it, for the audit log, such as `models add`; `settings set` by default.
    pub command: Option<String>,
}

#[wire(PartialEq)]
pub struct SetResult {
    /// The effective setting.
    pub setting: Setting,
    /// The previous value; null if none was set.
    pub old: Option<String>,
    /// The environment variable that overrides it: the setting is stored but has no effect while the variable is set.
    pub overridden_by: Option<String>,
}
