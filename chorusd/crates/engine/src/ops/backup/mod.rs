//! Online backups of the whole home: `create` writes into a directory, `archive` sends to the client.
//!
//! Files are copied first, without any lock. Then, while no session or agent may be moved or deleted, the database
//! snapshots are completed and the files that changed since are spooled, all on the home's own disk. So a backup
//! contains everything that was acknowledged before it began, and each row of its catalog has its file. Only after that
//! are the spooled files written to the backup's target, however slow that is.

pub mod archive;
pub mod create;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use chorus_base::error::{Error, Result};
use chorus_clock::Clock;
use chorus_config::Config;
use chorus_proto::ErrorKind;
use chorus_proto::methods::backup::Summary;
use chorus_runtime::run_blocking;
use chorus_store::{DB_DIR, Store};
use tokio::sync::{Mutex, OwnedMutexGuard, RwLock};

use super::agent::AgentResolver;
use crate::backup::{BackupSink, Collector, HomeIdentity, OnProgress};
use crate::ops::settings::EffectiveConfig;

/// Makes backups, one at a time.
#[derive(Debug)]
pub struct Backups {
    store: Arc<Store>,
    /// Its lock keeps agents where they are while the databases are copied.
    agents: Arc<AgentResolver>,
    /// Locked for writing while the databases are copied, so that sessions stay where they are.
    sessions_lock: Arc<RwLock<()>>,
    config: Arc<EffectiveConfig>,
    clock: Clock,
    one_at_a_time: Arc<Mutex<()>>,
    archives: archive::ArchiveStreams,
}

impl Backups {
    #[must_use]
    pub fn new(
        store: Arc<Store>,
        agents: Arc<AgentResolver>,
        sessions_lock: Arc<RwLock<()>>,
        config: Arc<EffectiveConfig>,
        clock: Clock,
    ) -> Self {
        let (one_at_a_time, archives) = (Arc::default(), archive::ArchiveStreams::default());
        Self { store, agents, sessions_lock, config, clock, one_at_a_time, archives }
    }

    fn start(&self) -> Result<OwnedMutexGuard<()>> {
        self.one_at_a_time
            .clone()
            .try_lock_owned()
            .map_err(|_| Error::new(ErrorKind::Busy, "another backup is already running").hint("wait until it ends"))
    }

    /// Drops what a connection left unfinished.
    pub fn close_connection(&self, connection: u64) {
        self.archives.close_connection(connection);
    }
}

/// Makes a backup.
async fn make_backup<S: BackupSink>(
    backups: &Backups,
    of: HomeIdentity,
    sink: S,
    progress: OnProgress,
) -> Result<Summary> {
    let started = Instant::now();
    let databases = backups.store.require_sqlite("a backup of the home")?;
    let (home, begun) = (backups.agents.home.clone(), backups.clock.now());
    let collector = run_blocking(move || Collector::new((&home, of), sink, begun, progress)?.copy_unlocked()).await?;
    let db = backups.agents.home.join(DB_DIR);
    let copies = databases.begin_snapshots(&db).await?;
    let (collector, late, copied) = {
        let _agents_stay = backups.agents.lock.lock().await;
        let _sessions_stay = backups.sessions_lock.write().await;
        let _files_stay = backups.store.files.change_lock.lock().await;
        let copied = copies.finish().await?;
        let (collector, late) = run_blocking(move || collector.spool_changed(&db)).await?;
        (collector, late, copied)
    };
    let keys = key_files(&backups.config.current(), &backups.agents.home);
    let mut summary = run_blocking(move || collector.finish(late, &copied, keys)).await?;
    summary.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(
        files = summary.files,
        bytes = summary.bytes,
        copied = summary.copied_files,
        unreadable = summary.unreadable.len(),
        took = ?started.elapsed(),
        "backup created"
    );
    Ok(summary)
}

/// Returns the paths, relative to the home, of key files in the home that the configuration names.
fn key_files(config: &Config, home: &Path) -> Vec<String> {
    let of_providers = config.providers.values().filter_map(|provider| provider.key.file());
    let of_servers = config.mcp.values().filter_map(|server| server.token_file());
    let named = of_providers.chain(config.discord.token.file()).chain(config.traces.headers.file()).chain(of_servers);
    let inside = named.filter_map(|path| path.strip_prefix(home).ok());
    inside.map(|path| path.to_string_lossy().into_owned()).collect()
}
