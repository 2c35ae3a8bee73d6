//! The operations: one function for each method of the protocol. The socket, Discord and MCP only translate requests
//! into these calls, so every rule is implemented once.

pub mod agent;
pub mod approvals;
pub mod audit;
pub mod backup;
pub mod capture;
mod catalog_rebuild;
pub mod catalog_sync;
pub mod cluster;
pub mod config;
pub mod context;
pub mod context_meter;
pub mod conversations;
pub mod daemon;
pub mod discord;
pub mod doctor;
pub mod events;
pub mod hints;
pub mod history_numbers;
pub(crate) mod import_sink;
mod import_usage;
pub mod memory;
pub mod models;
pub mod notes;
pub mod permissions;
mod recall;
mod redact_import;
pub mod resolve_agent;
pub mod schedule;
pub mod search;
pub mod search_in_scope;
mod searched_conversations;
mod secret_counts;
pub mod send;
pub mod session;
pub mod session_salvage;
pub mod settings;
pub mod tasks;
pub mod tool_host;
pub mod transfers;
pub mod trash;
pub mod usage;
pub mod workspace_restore;

use std::path::PathBuf;
use std::sync::Arc;

use chorus_clock::Clock;
use chorus_config::Config;
use chorus_llm::Models;
use chorus_mcp_client::McpServers;
use chorus_redact::Redactor;
use chorus_sandbox::Sandbox;
use chorus_store::Store;
use tokio::sync::RwLock;
use uuid::Uuid;

use crate::KeyedMutex;
use crate::agent::agent_index::AgentIndex;
use crate::agent::registry::Registry;
use crate::agent::summaries::Summaries;
use crate::approvals::Approvals;
use crate::capture::CaptureService;
use crate::search::SearchService;
use crate::semantic::SemanticService;
use crate::tasks::Tasks;
use crate::traces::TraceFeed;
use crate::usage::UsageTracker;

/// The container of the services and of the state that they share. The composition root builds it once.
///
/// An operation does not see it, but takes the services that the table of routes lists with it. Two take the whole,
/// because they report on all of it: `status`, and `doctor` with its repairs. So do the implementations of
/// [`crate::tools::ToolHost`] and [`crate::tasks::TaskHost`], through which tools and background tasks reach
/// operations, and the front end for Discord.
#[derive(Debug)]
pub struct Ops {
    pub store: Arc<Store>,
    pub registry: Arc<Registry>,
    pub capture: Arc<CaptureService>,
    pub summaries: Arc<Summaries>,
    pub approvals: Arc<Approvals>,
    pub tasks: Tasks,
    pub sandbox: Arc<Sandbox>,
    /// MCP servers whose tools agents use.
    pub mcp: Arc<McpServers>,
    /// Admits one git command at a time per workspace.
    pub git_locks: Arc<KeyedMutex<Uuid>>,
    /// Finds the daemon's own keys and secrets of others.
    pub redactor: Arc<Redactor>,
    pub agents: Arc<AgentIndex>,
    pub agent_resolver: Arc<agent::AgentResolver>,
    pub agent_describer: Arc<agent::AgentDescriber>,
    pub agent_editor: Arc<agent::AgentEditor>,
    pub agent_exporter: agent::AgentExporter,
    /// Moves agents to other nodes of a cluster.
    pub agent_mover: Arc<cluster::AgentMover>,
    /// Checks the way to other nodes.
    pub peer_checks: cluster::PeerChecksCell,
    pub sessions: Arc<session::SessionReader>,
    pub session_importer: session::SessionImporter,
    pub session_trash: Arc<session::SessionTrash>,
    pub continuation_starter: context::ContinuationStarter,
    pub trash: trash::Trash,
    pub catalog_sync: Arc<catalog_sync::CatalogSync>,
    pub message_sender: send::MessageSender,
    pub context_meter: Arc<context_meter::ContextMeter>,
    /// Finds what was said.
    pub search: Arc<SearchService>,
    pub semantic: Arc<SemanticService>,
    /// Messages that agents get at certain times.
    pub schedules: Arc<schedule::Schedules>,
    pub models: Arc<Models>,
    pub usage: Arc<UsageTracker>,
    /// Model calls and tool calls as they end, and the state of their export.
    pub traces: Arc<TraceFeed>,
    pub clock: Clock,
    /// The configuration as read at the start. [`Ops::defaults`] has what was changed since.
    pub config: Arc<Config>,
    pub effective_config: Arc<settings::EffectiveConfig>,
    /// Reads the configuration file again.
    pub config_reloader: Arc<config::ConfigReloader>,
    pub home: PathBuf,
    pub daemon: daemon::DaemonState,
    /// Hold the write lock to delete a session or move an agent's directory. Hold the read lock to restore a session or
    /// write its file, so that it cannot be deleted meanwhile.
    pub sessions_lock: Arc<RwLock<()>>,
    /// Writes `running_tasks` of agent.json files when background tasks start or end.
    pub running_tasks_sync: tasks::RunningTasksSync,
    pub transfers: Arc<transfers::AllTransfers>,
    pub backups: Arc<backup::Backups>,
    /// The state of the Discord connection, and the channel operations that it offers.
    pub discord: Arc<discord::DiscordHandle>,
    /// Common prefixes of sessions that were compared lately.
    pub session_overlaps: session::diff::SessionOverlaps,
    /// Positions in exported texts from which the next piece can be written.
    pub export_positions: session::export_offsets::ExportPositions,
    /// Limits on messages that agents send each other.
    pub agent_message_limits: Arc<tool_host::AgentMessageLimits>,
}

impl Ops {
    /// Returns the configuration with the current settings, which hold wherever an agent sets nothing itself.
    #[must_use]
    pub fn defaults(&self) -> Arc<Config> {
        self.effective_config.current()
    }
}
