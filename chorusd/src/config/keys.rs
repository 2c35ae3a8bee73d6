//! The keys of config.toml, each with how it is set.

use std::time::Duration;

use reqwest::Url;

use super::provider::{self, named, url};
use super::value::{Given, unused_for};
use super::{Config, DurabilityMode};

/// One key.
pub struct Key {
    /// The table it stands in; empty at the top.
    pub table: &'static str,
    pub name: &'static str,
    pub set: fn(&mut Config, &Given) -> Result<(), String>,
}

const fn key(table: &'static str, name: &'static str, set: fn(&mut Config, &Given) -> Result<(), String>) -> Key {
    Key { table, name, set }
}

/// All of them.
pub const KEYS: &[Key] = &[
    key("", "default_model", |c, v| {
        c.default_model = Some(v.text()?).filter(|model| !model.is_empty());
        Ok(())
    }),
    key("", "durability", |c, v| {
        c.durability = match v.text()?.as_str() {
            "always" => DurabilityMode::Always,
            "interval" => DurabilityMode::Interval,
            _ => return Err("must be \"always\" or \"interval\"".into()),
        };
        Ok(())
    }),
    key("", "autosave_interval", |c, v| positive(&mut c.autosave_interval, v)),
    key("", "resume_on_start", |c, v| {
        c.resume_on_start = v.boolean()?;
        Ok(())
    }),
    key("", "max_frame", |c, v| {
        let size = v.size()?;
        // Below, not even an error would fit; above, the header could not say it.
        if !(4096..=1 << 30).contains(&size) {
            return Err("must be between 4KiB and 1GiB".into());
        }
        c.max_frame = size;
        Ok(())
    }),
    key("", "max_connections", |c, v| {
        let count = usize::try_from(v.count()?).unwrap_or(usize::MAX);
        if !(1..=1_000_000).contains(&count) {
            return Err("must be between 1 and 1000000".into());
        }
        c.max_connections = count;
        Ok(())
    }),
    key("", "frame_timeout", |c, v| positive(&mut c.frame_timeout, v)),
    key("", "stop_timeout", |c, v| positive(&mut c.stop_timeout, v)),
    key("", "approval_timeout", |c, v| positive(&mut c.approval_timeout, v)),
    key("", "log_level", |c, v| {
        c.log_level = v.text()?.parse().map_err(|_| "must be error, warn, info, debug or trace".to_owned())?;
        Ok(())
    }),
    key("defaults", "idle_timeout", |c, v| {
        c.defaults.idle_timeout = Some(v.duration()?).filter(|timeout| !timeout.is_zero());
        Ok(())
    }),
    key("defaults", "permissions", |c, v| {
        let name = v.text()?;
        c.profiles.resolve(&name.as_str().into())?;
        c.defaults.permissions = name;
        Ok(())
    }),
    key("defaults", "window_messages", |c, v| {
        c.defaults.window_messages = v.count()?;
        Ok(())
    }),
    key("defaults", "compact_at_tokens", |c, v| {
        c.defaults.compact_at_tokens = v.count()?;
        Ok(())
    }),
    key("defaults", "daily_token_limit", |c, v| {
        c.defaults.daily_token_limit = v.count()?;
        Ok(())
    }),
    key("defaults", "daily_cost_limit", |c, v| {
        c.defaults.daily_cost_limit = v.amount()?;
        Ok(())
    }),
    key("defaults", "redact", |c, v| {
        c.defaults.redact = v.boolean()?;
        Ok(())
    }),
    key("defaults", "checkpoint_workspace", |c, v| {
        c.defaults.checkpoint_workspace = v.boolean()?;
        Ok(())
    }),
    key("discord", "token_env", |c, v| {
        let variable = named(v, |c| c.is_ascii_alphanumeric() || c == '_')?;
        c.discord.take_token(provider::Key::Env { variable, value: None })
    }),
    key("discord", "token_file", |c, v| c.discord.take_token(provider::Key::File(v.text()?.into()))),
    key("discord", "credential", |c, v| {
        let name = named(v, |c| c.is_ascii_graphic() && c != '/')?;
        c.discord.take_token(provider::Key::Credential { name, path: None })
    }),
    key("discord", "guilds", |c, v| {
        let id = |text: String| text.parse().ok().filter(|id| *id != 0).ok_or(text);
        let ids: Result<Vec<u64>, String> = v.list()?.into_iter().map(id).collect();
        c.discord.guilds = ids.map_err(|text| format!("has {text:?}, which is no id of a server (a number)"))?;
        Ok(())
    }),
    key("discord", "category", |c, v| {
        let name = v.text()?;
        if name.trim().is_empty() || name.chars().count() > 100 {
            return Err("must be a name of 1 to 100 characters".into());
        }
        c.discord.category = name;
        Ok(())
    }),
    key("discord", "approvers", |c, v| {
        c.discord.approvers = v.list()?;
        Ok(())
    }),
    key("discord", "api_base", |c, v| {
        c.discord.api_base = url(&v.text()?, &["http", "https"])?;
        Ok(())
    }),
    key("discord", "gateway_url", |c, v| {
        // As it is understood, not as it is written: whoever connects reads it again, and less kindly.
        let url = Url::parse(&url(&v.text()?, &["ws", "wss"])?).map_err(|e| format!("is no URL: {e}"))?;
        c.discord.gateway_url = Some(url.as_str().trim_end_matches('/').to_owned());
        Ok(())
    }),
    key("discord", "reconnect_max", |c, v| positive(&mut c.discord.reconnect_max, v)),
    key("discovery", "local", |c, v| {
        c.discovery_local = v.boolean()?;
        Ok(())
    }),
    key("retention", "sessions_unused_for", |c, v| {
        c.sessions_unused_for = Some(unused_for(v.duration()?)?);
        Ok(())
    }),
];

/// A key as it is written after its table.
#[must_use]
pub fn dotted(table: &str, name: &str) -> String {
    if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") }
}

/// A value that came as text, from the environment or a command.
#[must_use]
pub fn given(text: &str) -> Given {
    Given::Text(text.to_owned())
}

/// Sets a duration that must not be nothing.
///
/// # Errors
/// What it must be.
pub fn positive(place: &mut Duration, value: &Given) -> Result<(), String> {
    let duration = value.duration()?;
    if duration.is_zero() {
        return Err("must be longer than nothing".into());
    }
    *place = duration;
    Ok(())
}
