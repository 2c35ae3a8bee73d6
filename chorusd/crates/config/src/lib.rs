//! The configuration of the daemon (config.toml and the environment) and of an agent (agent.json).

#![warn(unreachable_pub)]

pub mod agent;
mod capture;
mod cluster;
pub mod discord;
mod display;
pub mod edit;
mod grants;
mod hosts;
mod keys;
mod live;
mod load;
mod mcp;
mod metrics;
mod named_tables;
mod permissions;
pub mod provider;
mod raw_value;
mod reference;
mod runtime_settings;
mod search;
mod store;
mod store_sessions;
mod syntax_problem;
mod template;
mod traces;
mod workspace_mode;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chorus_base::Durability;
use chorus_permissions::{Grants, Profiles};

pub use capture::{CAPTURE_SOURCES, CaptureConfig};
pub use cluster::ClusterConfig;
pub use hosts::HostConfig;
pub use live::{changed_keys, is_live};
pub use load::{FileProblem, check_text, load, load_text};
pub use mcp::{EnvVariable, McpHttp, McpProgram, McpServer, McpTransport, check_mcp_name};
pub use metrics::MetricsListen;
pub use provider::{CallLimits, KeySource, Price, Provider, ProviderKind, is_loopback_url};
pub use raw_value::{format_days, parse_duration, validate_retention};
pub use reference::{KeyReference, agent_reference, config_reference};
pub use runtime_settings::{Origin, Origins, RUNTIME_SETTINGS, resolve_setting};
pub use search::{SearchConfig, SearchLanguage};
pub use store::{StoreConfig, StoreKind};
pub use store_sessions::{SessionStoreConfig, SessionStoreKind};
pub use template::{TableReference, config_template, table_references};
pub use traces::TracesConfig;
pub use workspace_mode::WorkspaceMode;

/// The effective configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// `provider/model` of new agents. `None`: agents have no model and summaries are extractive.
    pub default_model: Option<String>,
    pub durability: DurabilityMode,
    /// Interval between syncs of the journal with `durability = "interval"`.
    pub autosave_interval: Duration,
    /// Whether contexts are restored at a start; else they are saved and agents start idle.
    pub resume_on_start: bool,
    /// Limit of a frame in bytes.
    pub max_frame: usize,
    pub max_connections: usize,
    /// Time within which a frame must continue once it has begun.
    pub frame_timeout: Duration,
    /// Limit of an orderly stop.
    pub stop_timeout: Duration,
    /// Time after which an approval expires.
    pub approval_timeout: Duration,
    pub log_level: tracing::Level,
    pub defaults: Defaults,
    /// Providers by name.
    pub providers: BTreeMap<String, Provider>,
    /// Short names of models, each for a `provider/model`.
    pub aliases: BTreeMap<String, String>,
    /// Servers of the Model Context Protocol by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// Machines for `chorusctl --host` by name.
    pub hosts: BTreeMap<String, HostConfig>,
    /// Prices by `provider/model`.
    pub prices: BTreeMap<String, Price>,
    /// Whether discovery probes the default ports of local model servers.
    pub discovery_local: bool,
    /// Sessions that nobody has used for this long are moved to the trash; `None` keeps them.
    pub sessions_unused_for: Option<Duration>,
    /// The files of sessions that nobody has used for this long are compressed; `None` leaves them as they are.
    pub sessions_compressed_after: Option<Duration>,
    /// Permission profiles by name.
    pub profiles: Profiles,
    /// Who may assign which profiles to agents.
    pub grants: Grants,
    pub discord: discord::DiscordConfig,
    pub capture: CaptureConfig,
    pub search: SearchConfig,
    pub store: StoreConfig,
    pub cluster: ClusterConfig,
    /// The place at which figures can be read; `None`: nowhere.
    pub metrics_listen: Option<MetricsListen>,
    pub traces: TracesConfig,
    /// Origins of the values that are not defaults.
    pub origins: Origins,
    /// The configuration file.
    pub file: ConfigFile,
}

/// The configuration file, whether or not it exists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFile {
    pub path: PathBuf,
    /// True if it existed when the configuration was loaded.
    pub exists: bool,
}

/// The value of `durability`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurabilityMode {
    Always,
    Interval,
}

/// Defaults of agents.
#[derive(Debug, Clone, PartialEq)]
pub struct Defaults {
    /// `None` disables the timeout.
    pub idle_timeout: Option<Duration>,
    pub permissions: String,
    pub window_messages: u64,
    pub compact_at_tokens: u64,
    /// Tokens per agent and day; 0 means no limit.
    pub daily_token_limit: u64,
    /// US dollars per agent and day; 0 means no limit.
    pub daily_cost_limit: f64,
    /// Whether secrets in the output of agents are redacted.
    pub redact: bool,
    /// Whether a save commits the agent's workspace.
    pub checkpoint_workspace: bool,
    /// Conversations of an agent that are live at once.
    pub max_conversations: u64,
    /// Turns of an agent's conversations that run at the same time.
    pub concurrent_turns: u64,
    /// The directories in which an agent's conversations work.
    pub workspace: WorkspaceMode,
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
                max_conversations: 100,
                concurrent_turns: 4,
                workspace: WorkspaceMode::default(),
            },
            providers: BTreeMap::new(),
            aliases: BTreeMap::new(),
            mcp: BTreeMap::new(),
            hosts: BTreeMap::new(),
            prices: BTreeMap::new(),
            discovery_local: false,
            sessions_unused_for: None,
            sessions_compressed_after: None,
            capture: CaptureConfig::default(),
            search: SearchConfig::default(),
            metrics_listen: None,
            traces: TracesConfig::default(),
            store: StoreConfig::default(),
            cluster: ClusterConfig::default(),
            profiles: Profiles::default(),
            grants: Grants::default(),
            discord: discord::DiscordConfig::default(),
            origins: Origins::new(),
            file: ConfigFile::default(),
        }
    }
}

impl Config {
    /// The directory for the workspaces of all agents that the nodes of a cluster share.
    #[must_use]
    pub fn workspace_root(&self) -> Option<&Path> {
        self.cluster.workspace_root.as_deref().filter(|_| self.store.kind == StoreKind::Postgres)
    }

    /// Durability of the store's commits.
    #[must_use]
    pub fn durability(&self) -> Durability {
        match self.durability {
            DurabilityMode::Always => Durability::Always,
            DurabilityMode::Interval => Durability::Interval(self.autosave_interval),
        }
    }
}
