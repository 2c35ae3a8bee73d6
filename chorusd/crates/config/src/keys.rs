//! The keys of config.toml with their setters.

use std::time::Duration;

use url::Url;

use super::provider::{self, parse_base_url, parse_name};
use super::raw_value::{RawConfigValue, validate_retention};
use super::{Config, DurabilityMode};

/// One key.
pub(crate) struct ConfigKey {
    /// Table of the key; empty for the top level.
    pub table: &'static str,
    pub name: &'static str,
    pub set: fn(&mut Config, &RawConfigValue) -> Result<(), String>,
}

const fn config_key(
    table: &'static str,
    name: &'static str,
    set: fn(&mut Config, &RawConfigValue) -> Result<(), String>,
) -> ConfigKey {
    ConfigKey { table, name, set }
}

/// All keys.
pub(crate) const KEYS: &[ConfigKey] = &[
    config_key("", "default_model", |c, v| {
        c.default_model = Some(v.text()?).filter(|model| !model.is_empty());
        Ok(())
    }),
    config_key("", "durability", |c, v| {
        c.durability = match v.text()?.as_str() {
            "always" => DurabilityMode::Always,
            "interval" => DurabilityMode::Interval,
            _ => return Err("must be \"always\" or \"interval\"".into()),
        };
        Ok(())
    }),
    config_key("", "autosave_interval", |c, v| set_positive_duration(&mut c.autosave_interval, v)),
    config_key("", "resume_on_start", |c, v| {
        c.resume_on_start = v.boolean()?;
        Ok(())
    }),
    config_key("", "max_frame", |c, v| {
        let size = v.size()?;
        // An error message would not fit into less, and the frame header cannot express more.
        if !(4096..=1 << 30).contains(&size) {
            return Err("must be between 4KiB and 1GiB".into());
        }
        c.max_frame = size;
        Ok(())
    }),
    config_key("", "max_connections", |c, v| {
        let count = usize::try_from(v.count()?).unwrap_or(usize::MAX);
        if !(1..=1_000_000).contains(&count) {
            return Err("must be between 1 and 1000000".into());
        }
        c.max_connections = count;
        Ok(())
    }),
    config_key("", "frame_timeout", |c, v| set_positive_duration(&mut c.frame_timeout, v)),
    config_key("", "stop_timeout", |c, v| set_positive_duration(&mut c.stop_timeout, v)),
    config_key("", "approval_timeout", |c, v| set_positive_duration(&mut c.approval_timeout, v)),
    config_key("", "log_level", |c, v| {
        c.log_level = v.text()?.parse().map_err(|_| "must be error, warn, info, debug or trace".to_owned())?;
        Ok(())
    }),
    config_key("defaults", "idle_timeout", |c, v| {
        c.defaults.idle_timeout = Some(v.duration()?).filter(|timeout| !timeout.is_zero());
        Ok(())
    }),
    config_key("defaults", "permissions", |c, v| {
        let name = v.text()?;
        c.profiles.resolve(&name.as_str().into())?;
        c.defaults.permissions = name;
        Ok(())
    }),
    config_key("defaults", "window_messages", |c, v| {
        c.defaults.window_messages = v.count()?;
        Ok(())
    }),
    config_key("defaults", "compact_at_tokens", |c, v| {
        c.defaults.compact_at_tokens = v.count()?;
        Ok(())
    }),
    config_key("defaults", "daily_token_limit", |c, v| {
        c.defaults.daily_token_limit = v.count()?;
        Ok(())
    }),
    config_key("defaults", "daily_cost_limit", |c, v| {
        c.defaults.daily_cost_limit = v.amount()?;
        Ok(())
    }),
    config_key("defaults", "redact", |c, v| {
        c.defaults.redact = v.boolean()?;
        Ok(())
    }),
    config_key("defaults", "checkpoint_workspace", |c, v| {
        c.defaults.checkpoint_workspace = v.boolean()?;
        Ok(())
    }),
    config_key("discord", "token_env", |c, v| {
        let variable = parse_name(v, |c| c.is_ascii_alphanumeric() || c == '_')?;
        c.discord.set_token_source(provider::KeySource::Env { variable, value: None })
    }),
    config_key("discord", "token_file", |c, v| c.discord.set_token_source(provider::KeySource::File(v.text()?.into()))),
    config_key("discord", "credential", |c, v| {
        let name = parse_name(v, |c| c.is_ascii_graphic() && c != '/')?;
        c.discord.set_token_source(provider::KeySource::Credential { name, path: None })
    }),
    config_key("discord", "guilds", |c, v| {
        let id = |text: String| text.parse().ok().filter(|id| *id != 0).ok_or(text);
        let ids: Result<Vec<u64>, String> = v.list()?.into_iter().map(id).collect();
        c.discord.guilds = ids.map_err(|text| format!("has {text:?}, which is not a server ID (a number)"))?;
        Ok(())
    }),
    config_key("discord", "category", |c, v| {
        let name = v.text()?;
        if name.trim().is_empty() || name.chars().count() > 100 {
            return Err("must be a name of 1 to 100 characters".into());
        }
        c.discord.category = name;
        Ok(())
    }),
    config_key("discord", "approvers", |c, v| {
        c.discord.approvers = v.list()?;
        Ok(())
    }),
    config_key("discord", "api_base", |c, v| {
        c.discord.api_base = parse_base_url(&v.text()?, &["http", "https"])?;
        Ok(())
    }),
    config_key("discord", "gateway_url", |c, v| {
        // Store the parsed URL, because the client that connects parses it again, and more strictly.
        let url = Url::parse(&parse_base_url(&v.text()?, &["ws", "wss"])?).map_err(|e| format!("is not a URL: {e}"))?;
        c.discord.gateway_url = Some(url.as_str().trim_end_matches('/').to_owned());
        Ok(())
    }),
    config_key("discord", "reconnect_max", |c, v| set_positive_duration(&mut c.discord.reconnect_max, v)),
    config_key("discovery", "local", |c, v| {
        c.discovery_local = v.boolean()?;
        Ok(())
    }),
    config_key("retention", "sessions_unused_for", |c, v| {
        c.sessions_unused_for = Some(validate_retention(v.duration()?)?);
        Ok(())
    }),
];

/// The key with its table, as `table.name`.
#[must_use]
pub(crate) fn dotted_name(table: &str, name: &str) -> String {
    if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") }
}

/// A value that was given as text, by the environment or by a command.
#[must_use]
pub(crate) fn text_value(text: &str) -> RawConfigValue {
    RawConfigValue::Text(text.to_owned())
}

/// Sets a duration that must not be zero.
pub(crate) fn set_positive_duration(place: &mut Duration, value: &RawConfigValue) -> Result<(), String> {
    let duration = value.duration()?;
    if duration.is_zero() {
        return Err("must be greater than zero".into());
    }
    *place = duration;
    Ok(())
}
