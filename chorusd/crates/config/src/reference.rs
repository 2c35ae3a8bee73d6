//! The reference of all keys, from which docs/CONFIGURATION.md is generated.

use super::Config;
use super::agent::{CONFIG_KEYS, SettableKey};
use super::display::duration_value;
use super::hosts::HOST_KEYS;
use super::keys::{ConfigKey, dotted_name, keys};
use super::live::is_live;
use super::mcp::{MCP_KEYS, mcp_default};
use super::provider::{CallLimits, NamedTableKey, PRICE_KEYS, PROVIDER_KEYS};

/// A key of config.toml or of agent.json.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReference {
    /// The header of its table without brackets, such as `defaults` or `providers.NAME`; empty for the top level.
    pub table: &'static str,
    pub name: &'static str,
    /// The default as it would be written in config.toml; `None` if it has none.
    pub default: Option<String>,
    /// Its meaning in a sentence or two, in Markdown.
    pub about: &'static str,
}

impl KeyReference {
    /// Returns true if a change of the key applies after a restart of the daemon.
    #[must_use]
    pub fn needs_restart(&self) -> bool {
        !is_live(&dotted_name(self.table, self.name))
    }

    /// The environment variable that overrides the key; keys of tables named by the user have none.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        keys().find(|key| key.table == self.table && key.name == self.name).map(ConfigKey::variable)
    }
}

/// Lists the keys of config.toml in the order in which they are documented.
#[must_use]
pub fn config_reference() -> Vec<KeyReference> {
    let config = Config::default();
    let fixed = keys().map(|key| {
        let value = config.value(&dotted_name(key.table, key.name)).unwrap_or_default();
        let default = Some(value.to_string()).filter(|_| !value.is_null());
        KeyReference { table: key.table, name: key.name, default, about: key.about }
    });
    let providers = named_reference("providers.NAME", PROVIDER_KEYS, provider_default);
    let mcp = named_reference("mcp.NAME", MCP_KEYS, mcp_default);
    let prices = named_reference("prices.\"PROVIDER/MODEL\"", PRICE_KEYS, |_| None);
    let hosts = named_reference("hosts.NAME", HOST_KEYS, |_| None);
    fixed.chain(providers).chain(mcp).chain(hosts).chain(prices).collect()
}

/// Lists the keys that `agent config` sets.
#[must_use]
pub fn agent_reference() -> Vec<KeyReference> {
    let row = |key: &SettableKey| KeyReference { table: "", name: key.name, default: None, about: key.about };
    CONFIG_KEYS.iter().map(row).collect()
}

fn named_reference<T>(
    table: &'static str,
    keys: &'static [NamedTableKey<T>],
    default: fn(&str) -> Option<String>,
) -> impl Iterator<Item = KeyReference> {
    keys.iter().map(move |&(name, about, _)| KeyReference { table, name, default: default(name), about })
}

fn provider_default(key: &str) -> Option<String> {
    let limits = CallLimits::default();
    let limit = match key {
        "connect_timeout" => limits.connect,
        "first_byte_timeout" => limits.first_byte,
        "idle_timeout" => limits.idle,
        "total_timeout" => limits.total,
        "start_timeout" => limits.start,
        _ => return None,
    };
    Some(duration_value(limit).to_string())
}
