//! The configuration of the daemon (config.toml and the environment) and of an agent (agent.json).

pub mod agent;
pub mod discord;
mod display;
mod grants;
mod keys;
mod load;
mod named_tables;
mod origin;
mod permissions;
pub mod provider;
mod raw_value;
mod secret;

use std::collections::BTreeMap;
use std::time::Duration;

pub use load::load;
pub use origin::{Origin, Origins, RUNTIME_SETTINGS, resolve_setting};
pub use provider::{CallLimits, KeySource, Price, Provider, ProviderKind, is_loopback_url};
pub use raw_value::{format_days, parse_duration, validate_retention};
pub use secret::Secret;

use crate::permissions::{Grants, Profiles};
use crate::store::Durability;

/// The configuration in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// `provider/model` of new agents; none: no model, extractive summaries.
    pub default_model: Option<String>,
    pub durability: DurabilityMode,
    /// How often the journal is brought to the disk with `durability = "interval"`.
    pub autosave_interval: Duration,
    /// Contexts are live again after a start; else they are saved and agents start idle.
    pub resume_on_start: bool,
    /// Longest frame in bytes.
    pub max_frame: usize,
    pub max_connections: usize,
    /// A frame that has begun must go on within this.
    pub frame_timeout: Duration,
    /// What an orderly stop may take.
    pub stop_timeout: Duration,
    /// How long a question whether something may be done stays open.
    pub approval_timeout: Duration,
    pub log_level: tracing::Level,
    pub defaults: Defaults,
    /// By their names.
    pub providers: BTreeMap<String, Provider>,
    /// Short names of models, each for a `provider/model`.
    pub aliases: BTreeMap<String, String>,
    /// By `provider/model`.
    pub prices: BTreeMap<String, Price>,
    /// Whether the usual ports of local model servers are asked.
    pub discovery_local: bool,
    /// How long nobody has used a session before it goes to the trash; `None`: it stays.
    pub sessions_unused_for: Option<Duration>,
    /// What agents may do, by name.
    pub profiles: Profiles,
    /// Who may give them which of those.
    pub grants: Grants,
    pub discord: discord::DiscordConfig,
    /// Where values come from that are not the default.
    pub origins: Origins,
}

/// `durability` as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurabilityMode {
    Always,
    Interval,
}

/// What agents have unless they say otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Defaults {
    /// `None`: never.
    pub idle_timeout: Option<Duration>,
    pub permissions: String,
    pub window_messages: u64,
    pub compact_at_tokens: u64,
    /// Tokens of an agent a day; 0: no limit.
    pub daily_token_limit: u64,
    /// US dollars of an agent a day; 0: no limit.
    pub daily_cost_limit: f64,
    /// Whether secrets are taken out of what agents produce.
    pub redact: bool,
    /// Whether a save commits the agent's workspace.
    pub checkpoint_workspace: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            default_model: None,
            durability: DurabilityMode::Always,
            autosave_interval: Duration::from_secs(30),
            resume_on_start: true,
            max_frame: chorus_proto::frame::MAX_FRAME,
            max_connections: 1024,
            frame_timeout: Duration::from_secs(5),
            stop_timeout: Duration::from_secs(10),
            approval_timeout: Duration::from_secs(120),
            log_level: tracing::Level::INFO,
            defaults: Defaults {
                idle_timeout: Some(Duration::from_secs(30 * 60)),
                permissions: "standard".into(),
                window_messages: 50,
                compact_at_tokens: 15_000,
                daily_token_limit: 0,
                daily_cost_limit: 0.0,
                redact: true,
                checkpoint_workspace: false,
            },
            providers: BTreeMap::new(),
            aliases: BTreeMap::new(),
            prices: BTreeMap::new(),
            discovery_local: false,
            sessions_unused_for: None,
            profiles: Profiles::default(),
            grants: Grants::default(),
            discord: discord::DiscordConfig::default(),
            origins: Origins::new(),
        }
    }
}

impl Config {
    /// What the store is told.
    #[must_use]
    pub fn durability(&self) -> Durability {
        match self.durability {
            DurabilityMode::Always => Durability::Always,
            DurabilityMode::Interval => Durability::Interval(self.autosave_interval),
        }
    }
}

/// The one of `known` that `given` was probably meant to be.
#[must_use]
pub fn closest_match<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(given, name), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
