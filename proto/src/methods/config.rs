//! `config.*`: the configuration file.

use super::settings::{ConfigFile, Setting};
use super::{method, wire};

method!(
    /// Reads the configuration file and applies what can be applied without a restart. A file that cannot be used changes
    /// nothing.
    Reload = "config.reload", ReloadParams => ReloadResult
);
method!(
    /// Sets or removes a key of the configuration file, and reads the file again. Comments in the file stay.
    Set = "config.set", SetParams => SetResult
);

#[wire(params, PartialEq, Eq)]
pub struct ReloadParams {}

#[wire(PartialEq, Eq)]
pub struct ReloadResult {
    pub file: ConfigFile,
    /// Keys with other values than before, which apply now.
    pub changed: Vec<String>,
    /// Keys that have other values in the file, which apply after a restart of the daemon.
    pub restart: Vec<String>,
}

#[wire(params, PartialEq, Eq)]
pub struct SetParams {
    /// With its table, for example `defaults.idle_timeout`, as a key in TOML.
    pub key: String,
    /// The value, as a person types it. Without one the key is removed from the file.
    pub value: Option<String>,
}

#[wire(PartialEq)]
pub struct SetResult {
    pub file: String,
    /// The key with its table.
    pub key: String,
    /// False if the file had the value already, or nothing to remove.
    pub changed: bool,
    /// The file did not exist before.
    #[omit_empty]
    pub created: bool,
    /// The value before, as it was written in the file; null if it had none.
    pub old: Option<String>,
    /// The effective value; null for a table, or a key that is set no more.
    pub setting: Option<Setting>,
    /// The value set with `settings set` that would have hidden the one in the file, and was removed.
    pub removed_setting: Option<String>,
    /// The environment variable that overrides the file.
    pub overridden_by: Option<String>,
    /// The value applies after a restart of the daemon.
    pub restart: bool,
}
