//! The keys of config.toml with their setters.

use std::time::Duration;

use url::Url;

use super::agent::check_name;
use super::capture::{parse_directories, parse_sources};
use super::discord::Shards;
use super::metrics::parse_listen;
use super::provider::{self, parse_base_url, parse_name};
use super::raw_value::{RawConfigValue, validate_retention};
use super::{Config, DurabilityMode, cluster, store, store_sessions, traces};

/// The highest limit on connections.
const MAX_CONNECTIONS: usize = 1_000_000;

/// One key.
pub(crate) struct ConfigKey {
    /// Table of the key; empty for the top level.
    pub table: &'static str,
    pub name: &'static str,
    /// Its meaning in a sentence or two, for docs/CONFIGURATION.md.
    pub about: &'static str,
    pub set: fn(&mut Config, &RawConfigValue) -> Result<(), String>,
}

pub(crate) const fn config_key(
    table: &'static str,
    name: &'static str,
    about: &'static str,
    set: fn(&mut Config, &RawConfigValue) -> Result<(), String>,
) -> ConfigKey {
    ConfigKey { table, name, about, set }
}

/// Returns all keys.
pub(crate) fn keys() -> impl Iterator<Item = &'static ConfigKey> {
    KEYS.iter().chain(traces::KEYS).chain(store::KEYS).chain(store_sessions::KEYS).chain(cluster::KEYS)
}

impl ConfigKey {
    /// Returns the environment variable that overrides the key. Names of keys in the tables of the cluster say little
    /// without their table.
    pub(crate) fn variable(&self) -> String {
        match self.table {
            "store" | "store.sessions" | "cluster" | "metrics" | "traces" => {
                format!("CHORUS_{}_{}", self.table.replace('.', "_").to_uppercase(), self.name.to_uppercase())
            }
            _ => format!("CHORUS_{}", self.name.to_uppercase()),
        }
    }
}

const KEYS: &[ConfigKey] = &[
    config_key(
        "",
        "default_model",
        "Model of agents that name none, as `provider/model` or an alias. Without one, agents cannot answer, and summaries use rules only.",
        |c, v| {
            c.default_model = Some(v.text()?).filter(|model| !model.is_empty());
            Ok(())
        },
    ),
    config_key(
        "",
        "durability",
        "`\"always\"` syncs each message to the disk before it is acknowledged; `\"interval\"` syncs every `autosave_interval`, and a power failure can lose what came since.",
        |c, v| {
            c.durability = match v.text()?.as_str() {
                "always" => DurabilityMode::Always,
                "interval" => DurabilityMode::Interval,
                _ => return Err("must be \"always\" or \"interval\"".into()),
            };
            Ok(())
        },
    ),
    config_key("", "autosave_interval", "Time between syncs with `durability = \"interval\"`.", |c, v| {
        set_positive_duration(&mut c.autosave_interval, v)
    }),
    config_key(
        "",
        "resume_on_start",
        "`true`: live conversations continue after a restart. `false`: a restart saves them and clears them.",
        |c, v| {
            c.resume_on_start = v.boolean()?;
            Ok(())
        },
    ),
    config_key("", "max_frame", "Largest request or reply on the socket, from 4KiB to 1GiB.", |c, v| {
        let size = v.size()?;
        // An error message would not fit into less, and the frame header cannot express more.
        if !(4096..=1 << 30).contains(&size) {
            return Err("must be between 4KiB and 1GiB".into());
        }
        c.max_frame = size;
        Ok(())
    }),
    config_key("", "max_connections", "Largest number of clients that are connected at the same time.", |c, v| {
        let count = v.count().ok().and_then(|count| usize::try_from(count).ok());
        let count = count.filter(|count| (1..=MAX_CONNECTIONS).contains(count));
        c.max_connections = count.ok_or_else(|| format!("must be a whole number from 1 to {MAX_CONNECTIONS}"))?;
        Ok(())
    }),
    config_key(
        "",
        "frame_timeout",
        "Time within which a client must finish sending a request that it has started.",
        |c, v| set_positive_duration(&mut c.frame_timeout, v),
    ),
    config_key(
        "",
        "stop_timeout",
        "Time within which the daemon stops; what is still running then is cancelled.",
        |c, v| set_positive_duration(&mut c.stop_timeout, v),
    ),
    config_key("", "approval_timeout", "Time that an action waits for approval; after that it is denied.", |c, v| {
        set_positive_duration(&mut c.approval_timeout, v)
    }),
    config_key("", "log_level", "`error`, `warn`, `info`, `debug` or `trace`.", |c, v| {
        c.log_level = v.text()?.parse().map_err(|_| "must be error, warn, info, debug or trace".to_owned())?;
        Ok(())
    }),
    config_key(
        "defaults",
        "idle_timeout",
        "Inactivity after which a live conversation is saved and cleared; `0` never does.",
        |c, v| {
            c.defaults.idle_timeout = Some(v.duration()?).filter(|timeout| !timeout.is_zero());
            Ok(())
        },
    ),
    config_key(
        "defaults",
        "permissions",
        "Permission profile: `open`, `standard`, `locked`, or one of `[permissions.NAME]`.",
        |c, v| {
            let name = v.text()?;
            c.profiles.resolve(&name.as_str().into())?;
            c.defaults.permissions = name;
            Ok(())
        },
    ),
    config_key("defaults", "window_messages", "Largest number of messages that a model is shown.", |c, v| {
        c.defaults.window_messages = v.count()?;
        Ok(())
    }),
    config_key(
        "defaults",
        "compact_at_tokens",
        "Number of tokens above which older messages are replaced by a summary in what a model is shown.",
        |c, v| {
            c.defaults.compact_at_tokens = v.count()?;
            Ok(())
        },
    ),
    config_key(
        "defaults",
        "daily_token_limit",
        "Tokens that an agent may use in a day, input and output; `0` means no limit.",
        |c, v| {
            c.defaults.daily_token_limit = v.count()?;
            Ok(())
        },
    ),
    config_key(
        "defaults",
        "daily_cost_limit",
        "US dollars that an agent may cost in a day; `0` means no limit.",
        |c, v| {
            c.defaults.daily_cost_limit = v.amount()?;
            Ok(())
        },
    ),
    config_key("defaults", "redact", "Replaces keys and tokens in what models and tools produce.", |c, v| {
        c.defaults.redact = v.boolean()?;
        Ok(())
    }),
    config_key("defaults", "checkpoint_workspace", "Each save also commits the agent's workspace.", |c, v| {
        c.defaults.checkpoint_workspace = v.boolean()?;
        Ok(())
    }),
    config_key(
        "defaults",
        "max_conversations",
        "Largest number of an agent's conversations that are live at once; when another one starts, the one without messages for longest is saved and cleared.",
        |c, v| set_positive_count(&mut c.defaults.max_conversations, v),
    ),
    config_key(
        "defaults",
        "concurrent_turns",
        "Largest number of turns of an agent's conversations that run at the same time; further ones wait.",
        |c, v| set_positive_count(&mut c.defaults.concurrent_turns, v),
    ),
    config_key(
        "defaults",
        "workspace",
        "`\"shared\"`: all conversations of an agent work in its workspace. `\"worktree\"`: each conversation except `main` gets a separate git worktree and branch.",
        |c, v| {
            let mode = v.text()?.parse();
            c.defaults.workspace = mode.map_err(|_: String| "must be \"shared\" or \"worktree\"".to_owned())?;
            Ok(())
        },
    ),
    config_key("discord", "token_env", "Environment variable that holds the bot token.", |c, v| {
        let variable = parse_name(v, |c| c.is_ascii_alphanumeric() || c == '_')?;
        c.discord.set_token_source(provider::KeySource::Env { variable, value: None })
    }),
    config_key(
        "discord",
        "token_file",
        "File that holds the bot token; a relative path starts at the directory of config.toml.",
        |c, v| c.discord.set_token_source(provider::KeySource::File(v.text()?.into())),
    ),
    config_key("discord", "credential", "Name of a systemd credential that holds the bot token.", |c, v| {
        let name = parse_name(v, |c| c.is_ascii_graphic() && c != '/')?;
        c.discord.set_token_source(provider::KeySource::Credential { name, path: None })
    }),
    config_key("discord", "guilds", "IDs of the servers to serve. Empty: those of the first connection.", |c, v| {
        let id = |text: String| text.parse().ok().filter(|id| *id != 0).ok_or(text);
        let ids: Result<Vec<u64>, String> = v.list()?.into_iter().map(id).collect();
        c.discord.guilds = ids.map_err(|text| format!("has {text:?}, which is not a server ID (a number)"))?;
        Ok(())
    }),
    config_key("discord", "category", "Category in which channels of new agents are created.", |c, v| {
        let name = v.text()?;
        if name.trim().is_empty() || name.chars().count() > 100 {
            return Err("must be a name of 1 to 100 characters".into());
        }
        c.discord.category = name;
        Ok(())
    }),
    config_key("discord", "approvers", "Roles, by name or ID, whose members may answer any approval.", |c, v| {
        c.discord.approvers = v.list()?;
        Ok(())
    }),
    config_key("discord", "dm_agent", "Agent that answers direct messages. Unset: nobody does.", |c, v| {
        c.discord.dm_agent = Some(v.text()?).filter(|name| !name.is_empty());
        c.discord.dm_agent.as_deref().map_or(Ok(()), check_name).map_err(|failure| failure.message)?;
        Ok(())
    }),
    config_key(
        "discord",
        "dm_allow",
        "IDs of people, and roles by name or ID, who may write direct messages. Empty: whoever can write in the channel of `dm_agent`.",
        |c, v| {
            c.discord.dm_allow = v.list()?;
            Ok(())
        },
    ),
    config_key("discord", "api_base", "Address of Discord's API, for a proxy or a test server.", |c, v| {
        c.discord.api_base = parse_base_url(&v.text()?, &["http", "https"])?;
        Ok(())
    }),
    config_key("discord", "gateway_url", "Address of the gateway. Unset: `api_base` is asked for it.", |c, v| {
        // Store the parsed URL, because the client that connects parses it again, and more strictly.
        let url = Url::parse(&parse_base_url(&v.text()?, &["ws", "wss"])?).map_err(|e| format!("is not a URL: {e}"))?;
        c.discord.gateway_url = Some(url.as_str().trim_end_matches('/').to_owned());
        Ok(())
    }),
    config_key("discord", "reconnect_max", "Longest wait between two attempts to connect.", |c, v| {
        set_positive_duration(&mut c.discord.reconnect_max, v)
    }),
    config_key(
        "discord",
        "shards",
        "Connections among which Discord divides the servers of the bot; \"auto\": as many as Discord recommends. More than one is necessary in 2,500 servers or more.",
        |c, v| {
            let text = if let RawConfigValue::Integer(number) = v { number.to_string() } else { v.text()? };
            c.discord.shards = Shards::parse(&text)?;
            Ok(())
        },
    ),
    config_key(
        "discovery",
        "local",
        "Looks for Ollama, llama.cpp and LM Studio on their usual ports of this machine.",
        |c, v| {
            c.discovery_local = v.boolean()?;
            Ok(())
        },
    ),
    config_key(
        "retention",
        "sessions_unused_for",
        "Age without use after which saved conversations move to the trash, at least `1d`. Unset: they stay.",
        |c, v| {
            c.sessions_unused_for = Some(validate_retention(v.duration()?)?);
            Ok(())
        },
    ),
    config_key(
        "retention",
        "sessions_compressed_after",
        "Age without use after which the files of saved conversations are compressed, at least `1d`. Unset: none is compressed.",
        |c, v| {
            c.sessions_compressed_after = Some(validate_retention(v.duration()?)?);
            Ok(())
        },
    ),
    config_key(
        "capture",
        "sources",
        "Programs whose conversations are captured, for example `[\"claude-code\", \"codex\"]`, besides those that `chorusctl capture on` turned on.",
        |c, v| {
            c.capture.sources = parse_sources(v.list()?)?;
            Ok(())
        },
    ),
    config_key(
        "capture",
        "exclude",
        "Directories of projects, or of transcripts, that are not captured. `~` is the home directory of the daemon's user.",
        |c, v| {
            c.capture.exclude = parse_directories(v.list()?)?;
            Ok(())
        },
    ),
    config_key(
        "capture",
        "redact_secrets",
        "`false`: secrets are kept in conversations that are captured for the first time. `chorusctl capture on --redact` or `--no-redact` overrides it. Unset: they are redacted.",
        |c, v| {
            c.capture.redact = Some(v.boolean()?);
            Ok(())
        },
    ),
    config_key(
        "metrics",
        "listen",
        "Place at which Prometheus reads figures: a loopback address with a port, such as `\"127.0.0.1:9464\"`, or `\"unix:/PATH\"`. Without it nobody can.",
        |c, v| {
            c.metrics_listen = Some(parse_listen(&v.text()?)?);
            Ok(())
        },
    ),
    config_key(
        "search",
        "index",
        "`false`: messages are not indexed and cannot be searched, and an existing index is deleted.",
        |c, v| {
            c.search.index = v.boolean()?;
            Ok(())
        },
    ),
    config_key(
        "search",
        "index_tool_results",
        "Also finds the results of tools. Commands that tools ran are always found. A change rebuilds the index.",
        |c, v| {
            c.search.index_tool_results = v.boolean()?;
            Ok(())
        },
    ),
    config_key(
        "search",
        "language",
        "Language whose word endings are ignored in searches, for example `\"german\"`; `\"none\"` ignores none. A change rebuilds the index.",
        |c, v| {
            c.search.language = v.text()?.parse()?;
            Ok(())
        },
    ),
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

/// Sets a count, which must not be zero.
fn set_positive_count(count: &mut u64, value: &RawConfigValue) -> Result<(), String> {
    *count = value.count()?;
    if *count == 0 { Err("must be at least 1".into()) } else { Ok(()) }
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
