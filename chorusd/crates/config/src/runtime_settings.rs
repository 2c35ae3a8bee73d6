//! Origins of configuration values, and the settings that can be changed while the daemon runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};

use super::Config;
use super::keys::{dotted_name, keys, text_value};
use super::live::is_live;

/// Origin of a value; a key without one has its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The line is counted from 1; 0 if the file does not have the key any more.
    File { path: PathBuf, line: usize },
    /// Name of the environment variable.
    Environment(String),
    /// Set by `settings set`.
    Settings,
}

/// Origins of values by their keys.
pub type Origins = BTreeMap<String, Origin>;

/// Settings that `settings set` accepts: the short name, and the key of the configuration.
pub const RUNTIME_SETTINGS: [(&str, &str); 3] = [
    ("default_model", "default_model"),
    ("permissions", "defaults.permissions"),
    ("idle_timeout", "defaults.idle_timeout"),
];

/// Resolves the name of a setting, given as the short name or as the key in config.toml.
///
/// # Errors
/// `invalid_params` with the most similar name.
pub fn resolve_setting(name: &str) -> Result<(&'static str, &'static str)> {
    if let Some(found) = RUNTIME_SETTINGS.iter().find(|(short, key)| *short == name || *key == name) {
        return Ok(*found);
    }
    let shown: String = name.chars().take(80).collect();
    let names = RUNTIME_SETTINGS.map(|(name, _)| name);
    let known = keys().map(|key| (key.name, dotted_name(key.table, key.name)));
    if let Some((_, key)) = known.into_iter().find(|(short, key)| *short == name || key == name) {
        let how = if is_live(&key) { "" } else { " and restart the daemon" };
        return Err(Error::invalid(format!("`{shown}` cannot be stored by the daemon")).hint(format!(
            "set it in config.toml{how}: chorusctl config set {key} VALUE; settings for this command: {}",
            names.join(", ")
        )));
    }
    let failure = Error::invalid(format!("unknown setting `{shown}`"));
    Err(match closest_match(name, names) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure.hint(format!("settings: {}", names.join(", "))),
    })
}

impl Config {
    /// Returns this configuration with the setting `name` changed to `value`. The environment has precedence: if it
    /// sets the key, `value` is only validated.
    ///
    /// # Errors
    /// A message about the value that follows its name.
    pub fn with_setting(&self, name: &str, value: &str) -> Result<Self, String> {
        let mut set = self.clone();
        let found = RUNTIME_SETTINGS.iter().find(|(short, _)| *short == name).map(|(_, key)| *key);
        let whole = |key: &super::keys::ConfigKey| Some(dotted_name(key.table, key.name)) == found.map(str::to_owned);
        let key = keys().find(|key| whole(key)).ok_or("is not a setting")?;
        (key.set)(&mut set, &text_value(value))?;
        let name = dotted_name(key.table, key.name);
        if matches!(self.origins.get(&name), Some(Origin::Environment(_))) {
            return Ok(self.clone());
        }
        set.origins.insert(name, Origin::Settings);
        Ok(set)
    }
}
