//! `[hosts.NAME]` of config.toml, which `chorusd` checks completely.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::error::RemoteError;

/// Exit status of an invalid configuration.
const INVALID: u8 = 2;

/// The table of a host in config.toml.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostTable {
    /// Destination for ssh: `[USER@]HOST` or `ssh://[USER@]HOST[:PORT]`. The name by default.
    pub ssh: Option<String>,
    /// `chorusctl` there, if it is not in `PATH`.
    pub command: Option<String>,
    /// The home of Chorus there.
    pub home: Option<String>,
    /// The daemon's socket there.
    pub socket: Option<String>,
    /// Command to use instead of ssh.
    pub rsh: Option<String>,
}

/// The part of config.toml that is read.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    hosts: BTreeMap<String, toml::Value>,
}

/// Returns the names of the hosts in a configuration file; none if it cannot be read.
#[must_use]
pub fn host_names(config: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(config).unwrap_or_default();
    toml::from_str::<Config>(&text).map(|config| config.hosts.into_keys().collect()).unwrap_or_default()
}

/// Returns what the configuration file says about a host; `None` if it does not name it.
///
/// # Errors
/// The file cannot be read, or its table of hosts is invalid.
pub(crate) fn find(config: &Path, name: &str) -> Result<Option<HostTable>, RemoteError> {
    let failed = |why: String| {
        RemoteError::new(INVALID, format!("{}: {why}", config.display()), "fix it; see docs/CONFIGURATION.md")
    };
    let text = match std::fs::read_to_string(config) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
    };
    let parsed: Config = toml::from_str(&text).map_err(|error| failed(error.message().to_owned()))?;
    let Some(table) = parsed.hosts.get(name) else { return Ok(None) };
    let table = table
        .clone()
        .try_into()
        .map_err(|error: toml::de::Error| failed(format!("`hosts.{name}`: {}", error.message())))?;
    Ok(Some(table))
}
