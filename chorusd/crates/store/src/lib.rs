//! Persistent storage of one home: the journal of live contexts, the catalog of agents and sessions, and session files.
//!
//! The public interface is asynchronous and names no SQLite type, so that another database or an object store can
//! replace SQLite.

#![warn(unreachable_pub)]

mod audit_anchor;
mod background_pool;
mod catalog;
mod catalog_salvage;
mod copy_tree;
mod db_thread;
pub mod index_cache;
pub mod integrity;
pub mod journal;
pub mod message_spool;
mod open_workspace_root;
mod paced_file;
pub mod recovery;
pub(crate) mod reservations;
pub mod session_compression;
mod session_file_fsync;
pub mod session_files;
pub mod session_form;
mod session_growth;
mod session_header_update;
mod shared_bodies;
mod shared_files;
mod shared_workspaces;
mod snapshot;
mod sqlite;
mod sqlite_files;
pub mod trash;
pub mod unverified_session;
mod upkeep;
mod workspace_root;

use std::path::Path;
use std::sync::Arc;

use chorus_base::Durability;
use chorus_base::error::{Error, Result};
use chorus_catalog::{Catalog, ChainVerifier};
use chorus_journal::{Journal, Ownership};
use chorus_proto::ErrorKind;
use chorus_redact::Redactor;
use jiff::Timestamp;

pub use catalog::DirectoryScan;
use catalog::SqliteCatalog;
pub use journal::SqliteJournal;
pub use open_workspace_root::RootChoice;
pub use session_file_fsync::syncfs_covers as syncs_whole_file_system;
pub use session_files::SessionFiles;
pub use session_growth::{ChangeGrown, GrowthResult, HeaderChange, PrepareMessage};
pub use shared_bodies::{BodyComparison, BucketComparison, SharedBodies, is_current_copy};
pub use shared_files::{AgentDir, SharedFiles};
pub use shared_workspaces::{NewWorkspaceBundle, SharedWorkspaces};
pub use snapshot::{PendingSnapshots, Snapshots};
pub use sqlite_files::SqliteFiles;
pub use upkeep::Upkeep;
pub use workspace_root::{FoundWorkspace, WorkspaceRoot};

/// Called when storage can no longer be trusted: a sync failed, so no further commit may be acknowledged.
pub type OnFatal = Arc<dyn Fn(Error) + Send + Sync>;

/// Directory of the databases below the home.
pub const DB_DIR: &str = "db";

/// File name of the journal's database.
pub const JOURNAL_FILE: &str = "live.db";

/// File name of the catalog's database.
pub const CATALOG_FILE: &str = "chorus.db";

/// The databases and session files of one home.
pub struct Store {
    pub journal: Arc<dyn Journal>,
    pub catalog: Catalog,
    pub files: Arc<SessionFiles>,
    /// The bodies of sessions that this daemon shares with others; `None` if the files of sessions are the only ones.
    pub bodies: Option<Arc<dyn SharedBodies>>,
    /// The files of agents that this daemon shares with others; `None` if the files on this machine are the only ones.
    pub agent_files: Option<Arc<dyn SharedFiles>>,
    /// The checkpoints of workspaces that this daemon shares with others; `None` if workspaces stay on this machine.
    pub workspaces: Option<Arc<dyn SharedWorkspaces>>,
    /// The directory with the workspaces of all agents that the nodes share; `None` if each has its own.
    pub workspace_root: Option<Arc<WorkspaceRoot>>,
    /// Which agents this daemon may write for; `None` if the database belongs to it alone.
    pub ownership: Option<Arc<dyn Ownership>>,
    upkeep: Arc<dyn Upkeep>,
    /// The same databases if they are files in the home.
    sqlite: Option<Arc<SqliteFiles>>,
    on_fatal: OnFatal,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the databases below `home`, creating those that do not exist yet. `redactor` keeps secrets out of the audit
    /// log. Blocks.
    ///
    /// # Errors
    /// Fails if a database cannot be opened or has a newer schema, or if the journal is missing although there was one.
    pub fn open(
        home: &Path,
        durability: Durability,
        on_fatal: &OnFatal,
        now: Timestamp,
        redactor: Arc<Redactor>,
    ) -> Result<Self> {
        let db = home.join(DB_DIR);
        recovery::refuse_missing(home)?;
        let journal = Arc::new(SqliteJournal::open(&db.join(JOURNAL_FILE), durability, on_fatal, now)?);
        let (catalog, damaged) = SqliteCatalog::open(&db.join(CATALOG_FILE), on_fatal, now, redactor)?;
        if let Some(text) = damaged {
            tracing::error!("{text}");
            journal.emit_notice(&text, now);
        }
        let sqlite = Arc::new(SqliteFiles { journal: journal.clone(), catalog });
        sqlite.start_audit_anchor();
        Ok(Self {
            journal,
            catalog: sqlite.catalog.tables.clone(),
            files: Arc::default(),
            bodies: None,
            agent_files: None,
            workspaces: None,
            workspace_root: None,
            ownership: None,
            upkeep: sqlite.clone(),
            sqlite: Some(sqlite),
            on_fatal: on_fatal.clone(),
        })
    }

    /// Makes a store of a journal and a catalog in a database that is not in the home.
    #[must_use]
    pub fn with_database(
        journal: Arc<dyn Journal>,
        catalog: Catalog,
        ownership: Arc<dyn Ownership>,
        upkeep: Arc<dyn Upkeep>,
        on_fatal: &OnFatal,
    ) -> Self {
        Self {
            journal,
            catalog,
            files: Arc::default(),
            bodies: None,
            agent_files: None,
            workspaces: None,
            workspace_root: None,
            ownership: Some(ownership),
            upkeep,
            sqlite: None,
            on_fatal: on_fatal.clone(),
        }
    }

    /// Keeps the bodies of sessions in `bodies`, which shares `files` with this store and stands in front of its table of
    /// sessions.
    #[must_use]
    pub fn with_bodies(self, bodies: Arc<dyn SharedBodies>, files: Arc<SessionFiles>) -> Self {
        Self { bodies: Some(bodies), files, ..self }
    }

    /// Keeps the files of agents in `files`, too.
    #[must_use]
    pub fn with_agent_files(self, files: Arc<dyn SharedFiles>) -> Self {
        Self { agent_files: Some(files), ..self }
    }

    /// Returns the databases if they are files in the home.
    #[must_use]
    pub fn sqlite(&self) -> Option<&SqliteFiles> {
        self.sqlite.as_deref()
    }

    /// Returns the databases as files in the home.
    ///
    /// # Errors
    /// `unsupported` with the name of `operation`, which needs them, if they are elsewhere.
    pub fn require_sqlite(&self, operation: &str) -> Result<&SqliteFiles> {
        self.sqlite().ok_or_else(|| {
            Error::new(
                ErrorKind::Unsupported,
                format!("{operation} needs the store in SQLite, and this one is in PostgreSQL"),
            )
            .hint("use the tools of PostgreSQL")
        })
    }

    /// Returns `result` of a file operation unchanged. If a sync failed in it, poisons the databases and reports the
    /// error to `on_fatal`, which ends the daemon.
    pub fn escalate_fatal<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|failure| {
            if failure.fatal {
                self.upkeep.poison(failure.clone());
                (self.on_fatal)(failure.clone());
            }
        })
    }

    /// As [`Upkeep::is_purge_due`].
    pub async fn is_purge_due(&self) -> Result<bool> {
        self.upkeep.is_purge_due().await
    }

    /// As [`Upkeep::purge_deleted`].
    pub async fn purge_deleted(&self) -> Result<()> {
        self.upkeep.purge_deleted().await
    }

    /// As [`Upkeep::verify_audit_log`].
    pub async fn verify_audit_log(&self) -> Result<ChainVerifier> {
        self.upkeep.verify_audit_log().await
    }

    /// As [`Upkeep::record_lost_audits`].
    pub async fn record_lost_audits(&self, now: Timestamp) -> Result<()> {
        self.upkeep.record_lost_audits(now).await
    }

    /// As [`Upkeep::release_memory`].
    pub async fn release_memory(&self) {
        self.upkeep.release_memory().await;
    }

    /// As [`Upkeep::close`].
    pub async fn close(&self) -> Result<()> {
        self.upkeep.close().await
    }
}
