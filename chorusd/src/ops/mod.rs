//! What each verb does, once. The socket, Discord and MCP are front doors that only translate.

pub mod agent;
pub mod approvals;
pub mod audit;
pub mod backup;
mod catalog_rebuild;
pub mod catalog_sync;
pub mod context;
mod context_meter;
pub mod discord;
pub mod doctor;
pub mod events;
pub mod history_numbers;
mod import_sink;
pub mod memory;
pub mod models;
pub mod permissions;
mod redact_import;
pub mod resolve;
pub mod salvage;
pub mod send;
pub mod session;
pub mod settings;
pub mod status;
pub mod tasks;
pub mod tool_host;
pub mod transfers;
pub mod trash;
pub mod usage;
pub mod wire_types;
pub mod workspace_restore;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use jiff::Timestamp;
use tokio::sync::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;

use crate::agent::agent_index::AgentIndex;
use crate::agent::registry::Registry;
use crate::clock::Clock;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::llm::Models;
use crate::store::Store;
use crate::usage::UsageTracker;

/// Everything a verb may need.
#[derive(Debug)]
pub struct Ops {
    pub store: Arc<Store>,
    pub registry: Arc<Registry>,
    pub agents: Arc<AgentIndex>,
    pub models: Arc<Models>,
    pub usage: Arc<UsageTracker>,
    pub clock: Clock,
    /// As it was at the start; what `settings set` has changed since is in [`Ops::defaults`].
    pub config: Config,
    pub effective_config: settings::EffectiveConfig,
    pub home: PathBuf,
    pub socket: crate::lifecycle::socket::SocketPath,
    pub started_at: Timestamp,
    pub started: Instant,
    /// Connections that are open.
    pub connections: AtomicU64,
    /// Set by whoever wants the daemon to stop.
    pub stop: CancellationToken,
    /// One agent is made, renamed or destroyed at a time.
    pub agents_lock: Mutex<()>,
    /// Written where a session goes away or an agent's directory moves; read where a session becomes a live context, or
    /// its file is written beside the agent: none goes while it is on its way.
    pub sessions_lock: Arc<RwLock<()>>,
    pub history_numbers: history_numbers::HistoryNumbers,
    /// Agents whose `running_tasks` are to be written anew.
    pub running_tasks_sync: tasks::RunningTasksSync,
    /// Transcripts on their way in, and agents on theirs in and out.
    pub transcript_uploads: transfers::Transfers<transfers::TranscriptUpload>,
    pub agent_uploads: transfers::Transfers<()>,
    pub agent_downloads: transfers::Transfers<()>,
    /// Backups that are being made.
    pub backups: backup::Backups,
    /// How Discord stands, and what verbs ask of it.
    pub discord: discord::DiscordHandle,
    /// What sessions that were compared lately have in common.
    pub session_overlaps: session::diff::SessionOverlaps,
    /// How far sessions are exported.
    pub export_positions: session::export_positions::ExportPositions,
    /// What agents send each other.
    pub agent_message_limits: Arc<tool_host::AgentMessageLimits>,
}

impl Ops {
    /// The configuration in force, for what agents do not say themselves.
    #[must_use]
    pub fn defaults(&self) -> Arc<Config> {
        self.effective_config.current()
    }
}

/// Runs `work` where it may block.
///
/// # Errors
/// What `work` says.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|e| Error::internal(e.to_string()))?
}
