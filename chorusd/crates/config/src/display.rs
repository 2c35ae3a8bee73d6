//! Displays the configuration: every key with its value, without secrets.

use std::time::Duration;

use chorus_permissions::Profiles;
use serde_json::{Value, json};

use super::keys::{dotted_name, keys};
use super::{Config, DurabilityMode, KeySource, Provider, format_days};

impl Config {
    /// Lists every key with its value: the fixed keys first, then those of named tables.
    #[must_use]
    pub fn to_entries(&self) -> Vec<(String, Value)> {
        let mut shown: Vec<_> = keys()
            .map(|key| {
                let name = dotted_name(key.table, key.name);
                let value = self.value(&name).unwrap_or_default();
                (name, value)
            })
            .collect();
        shown.extend(self.aliases.iter().map(|(name, model)| (format!("aliases.{name}"), model.as_str().into())));
        for provider in self.providers.values() {
            let named = |(key, value): (&str, Value)| (format!("providers.{}.{key}", provider.name), value);
            shown.extend(provider_entries(provider).into_iter().map(named));
        }
        for server in self.mcp.values() {
            let named = |(key, value): (&str, Value)| (format!("mcp.{}.{key}", server.name), value);
            shown.extend(server.to_entries().into_iter().map(named));
        }
        for (name, host) in &self.hosts {
            shown.extend(host.to_entries().map(|(key, value)| (format!("hosts.{name}.{key}"), value.into())));
        }
        for (model, price) in &self.prices {
            let keys = [
                ("input", Some(price.input)),
                ("output", Some(price.output)),
                ("cache_read", price.cache_read),
                ("cache_write", price.cache_write),
            ];
            let set = keys.into_iter().filter_map(|(key, amount)| Some((key, amount?)));
            shown.extend(set.map(|(key, amount)| (format!("prices.{model:?}.{key}"), amount.into())));
        }
        let own = self.profiles.iter().filter(|(name, _)| !Profiles::is_preset(name));
        shown.extend(own.map(|(name, profile)| (format!("permissions.{name}"), profile.spec().to_json())));
        shown.extend(self.grants.iter().map(|(role, profiles)| (format!("permission_grants.{role}"), json!(profiles))));
        shown
    }

    /// Returns the value of a fixed key as it would be written in config.toml; `None` if there is no such key.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<Value> {
        let defaults = &self.defaults;
        Some(match key {
            "metrics.listen" => self.metrics_listen.as_ref().map(ToString::to_string).into(),
            "default_model" => self.default_model.as_deref().into(),
            "durability" => match self.durability {
                DurabilityMode::Always => "always".into(),
                DurabilityMode::Interval => "interval".into(),
            },
            "autosave_interval" => duration_value(self.autosave_interval),
            "resume_on_start" => self.resume_on_start.into(),
            "max_frame" => size_value(self.max_frame),
            "max_connections" => self.max_connections.into(),
            "frame_timeout" => duration_value(self.frame_timeout),
            "stop_timeout" => duration_value(self.stop_timeout),
            "approval_timeout" => duration_value(self.approval_timeout),
            "log_level" => self.log_level.to_string().to_lowercase().into(),
            "defaults.idle_timeout" => duration_value(defaults.idle_timeout.unwrap_or_default()),
            "defaults.permissions" => defaults.permissions.as_str().into(),
            "defaults.window_messages" => defaults.window_messages.into(),
            "defaults.compact_at_tokens" => defaults.compact_at_tokens.into(),
            "defaults.daily_token_limit" => defaults.daily_token_limit.into(),
            "defaults.daily_cost_limit" => defaults.daily_cost_limit.into(),
            "defaults.redact" => defaults.redact.into(),
            "defaults.checkpoint_workspace" => defaults.checkpoint_workspace.into(),
            "defaults.max_conversations" => defaults.max_conversations.into(),
            "defaults.concurrent_turns" => defaults.concurrent_turns.into(),
            "defaults.workspace" => defaults.workspace.as_str().into(),
            "discord.token_env" => match &self.discord.token {
                KeySource::Env { variable, .. } => variable.as_str().into(),
                _ => Value::Null,
            },
            "discord.token_file" => match &self.discord.token {
                KeySource::File(path) => path.to_string_lossy().into(),
                _ => Value::Null,
            },
            "discord.credential" => match &self.discord.token {
                KeySource::Credential { name, .. } => name.as_str().into(),
                _ => Value::Null,
            },
            "discord.guilds" => self.discord.guilds.iter().map(u64::to_string).collect::<Vec<_>>().join(",").into(),
            "discord.category" => self.discord.category.as_str().into(),
            "discord.approvers" => self.discord.approvers.join(",").into(),
            "discord.dm_agent" => self.discord.dm_agent.as_deref().into(),
            "discord.dm_allow" => self.discord.dm_allow.join(",").into(),
            "discord.api_base" => self.discord.api_base.as_str().into(),
            "discord.gateway_url" => self.discord.gateway_url.as_deref().into(),
            "discord.reconnect_max" => duration_value(self.discord.reconnect_max),
            "discord.shards" => self.discord.shards.to_string().into(),
            "discovery.local" => self.discovery_local.into(),
            "retention.sessions_unused_for" => self.sessions_unused_for.map(format_days).into(),
            "retention.sessions_compressed_after" => self.sessions_compressed_after.map(format_days).into(),
            "capture.sources" => self.capture.sources.join(",").into(),
            "capture.exclude" => {
                let paths = self.capture.exclude.iter().map(|path| path.to_string_lossy().into_owned());
                paths.collect::<Vec<_>>().join(",").into()
            }
            "capture.redact_secrets" => self.capture.redact.into(),
            "search.index" => self.search.index.into(),
            "search.index_tool_results" => self.search.index_tool_results.into(),
            "search.language" => self.search.language.as_str().into(),
            _ if key.starts_with("traces.") => return self.traces.value(&key["traces.".len()..]),
            _ => return self.store.value(key).or_else(|| self.cluster.value(key)),
        })
    }
}

/// Lists the keys of a provider: the source of its key, but not the key.
fn provider_entries(provider: &Provider) -> Vec<(&'static str, Value)> {
    let key = match &provider.key {
        KeySource::None => None,
        KeySource::Env { variable, .. } => Some(("api_key_env", json!(variable))),
        KeySource::File(path) => Some(("api_key_file", json!(path.to_string_lossy()))),
        KeySource::Credential { name, .. } => Some(("credential", json!(name))),
    };
    let limits = &provider.limits;
    let first = [("kind", json!(provider.kind.as_str())), ("base_url", json!(provider.base_url))];
    let rest = [
        ("connect_timeout", duration_value(limits.connect)),
        ("first_byte_timeout", duration_value(limits.first_byte)),
        ("idle_timeout", duration_value(limits.idle)),
        ("total_timeout", duration_value(limits.total)),
        ("start_timeout", duration_value(limits.start)),
        ("max_output_tokens", provider.max_output_tokens.map_or(Value::Null, Value::from)),
    ];
    first.into_iter().chain(key).chain(rest).collect()
}

/// Formats a duration like `30m`; zero is `0`.
pub(crate) fn duration_value(duration: Duration) -> Value {
    if duration.is_zero() {
        return "0".into();
    }
    humantime::format_duration(duration).to_string().replace(' ', "").into()
}

/// Formats a size like `16MiB`, or in bytes.
pub(super) fn size_value(bytes: usize) -> Value {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(size, _)| bytes >= *size && bytes.is_multiple_of(*size));
    unit.map_or_else(|| bytes.into(), |(size, name)| format!("{}{name}", bytes / size).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;

    #[test]
    fn every_key_has_a_value_that_could_be_written_again() {
        let config = Config::default();
        for key in keys() {
            let name = dotted_name(key.table, key.name);
            let value = config.value(&name).unwrap_or_else(|| panic!("{name} is not shown"));
            let mut again = Config { stop_timeout: Duration::from_secs(1), ..config.clone() };
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if !value.is_null() {
                (key.set)(&mut again, &keys::text_value(&text)).unwrap_or_else(|e| panic!("{name} {e}"));
            }
            assert_eq!(again.value(&name), Some(value));
        }
        assert_eq!((duration_value(Duration::from_secs(5400)), size_value(5000)), ("1h30m".into(), 5000.into()));
    }
}
