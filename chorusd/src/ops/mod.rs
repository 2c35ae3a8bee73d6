//! What each verb does, once. The socket, Discord and MCP are front doors that only translate.

pub mod agent;
pub mod approvals;
pub mod audit;
pub mod backup;
pub mod context;
pub mod discord;
pub mod doctor;
pub mod events;
mod import_sink;
pub mod memory;
mod meter;
pub mod models;
pub mod outside;
pub mod permissions;
mod rebuild;
pub mod salvage;
pub mod scan;
mod secrets;
pub mod select;
pub mod send;
pub mod session;
pub mod settings;
pub mod shown;
pub mod spools;
pub mod status;
pub mod tasks;
pub mod trash;
pub mod usage;
pub mod view;
pub mod workspace;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use jiff::Timestamp;
use tokio::sync::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;

use crate::agent::directory::Directory;
use crate::agent::registry::Registry;
use crate::clock::Clock;
use crate::config::Config;
use crate::failure::{Failure, Result};
use crate::llm::Models;
use crate::store::Store;
use crate::usage::Usage;

/// Everything a verb may need.
#[derive(Debug)]
pub struct Ops {
    pub store: Arc<Store>,
    pub registry: Arc<Registry>,
    pub directory: Arc<Directory>,
    pub models: Arc<Models>,
    pub usage: Arc<Usage>,
    pub clock: Clock,
    /// As it was at the start; what `settings set` has changed since is in [`Ops::defaults`].
    pub config: Config,
    pub in_force: settings::InForce,
    pub home: PathBuf,
    pub socket: crate::lifecycle::socket::Address,
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
    pub shown: shown::Shown,
    /// Agents whose `running_tasks` are to be written anew.
    pub listed: tasks::Listed,
    /// Transcripts on their way in, and agents on theirs in and out.
    pub transcripts: spools::Spools<spools::Transcript>,
    pub agents_in: spools::Spools<()>,
    pub agents_out: spools::Spools<()>,
    /// Backups that are being made.
    pub backups: backup::Backups,
    /// How Discord stands, and what verbs ask of it.
    pub discord: discord::Discord,
    /// What sessions that were compared lately have in common.
    pub commons: session::diff::Commons,
    /// How far sessions are exported.
    pub checkpoints: session::checkpoints::Checkpoints,
    /// What agents send each other.
    pub relay: Arc<outside::Relay>,
}

impl Ops {
    /// The configuration in force, for what agents do not say themselves.
    #[must_use]
    pub fn defaults(&self) -> Arc<Config> {
        self.in_force.now()
    }
}

/// Runs `work` where it may block.
///
/// # Errors
/// What `work` says.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|e| Failure::internal(e.to_string()))?
}
