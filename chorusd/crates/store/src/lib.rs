//! Persistent storage of one home: the journal of live contexts, the catalog of agents and sessions, and session files.
//!
//! The public interface is asynchronous and names no SQLite type, so that another database or an object store can
//! replace SQLite.

#![warn(unreachable_pub)]

mod audit_anchor;
mod background_pool;
mod catalog;
mod catalog_salvage;
mod db_thread;
pub mod index_cache;
pub mod integrity;
pub mod journal;
pub mod message_spool;
mod paced_file;
pub mod recovery;
pub(crate) mod reservations;
mod session_file_fsync;
pub mod session_files;
mod session_growth;
mod session_header_update;
mod snapshot;
mod sqlite;
pub mod trash;
pub mod unverified_session;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::Durability;
use chorus_base::error::{Error, Result};
use chorus_catalog::Catalog;
use chorus_journal::Journal;
use chorus_redact::Redactor;
use jiff::Timestamp;

pub use catalog::DirectoryScan;
use catalog::SqliteCatalog;
pub use journal::SqliteJournal;
pub use session_file_fsync::syncfs_covers as syncs_whole_file_system;
pub use session_files::SessionFiles;
pub use session_growth::{ChangeGrown, GrowthResult, HeaderChange, PrepareMessage};
pub use snapshot::{PendingSnapshots, Snapshots};

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
    /// The same, for what concerns its files.
    sqlite_journal: Arc<SqliteJournal>,
    pub catalog: Catalog,
    /// The same, for what concerns its files.
    sqlite_catalog: SqliteCatalog,
    pub files: SessionFiles,
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
        let store = Self {
            journal: journal.clone(),
            sqlite_journal: journal,
            catalog: catalog.tables.clone(),
            sqlite_catalog: catalog,
            files: SessionFiles::default(),
            on_fatal: on_fatal.clone(),
        };
        store.start_audit_anchor();
        Ok(store)
    }

    /// Returns `result` of a file operation unchanged. If a sync failed in it, poisons both databases and reports the
    /// error to `on_fatal`, which ends the daemon.
    pub fn escalate_fatal<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|failure| {
            if failure.fatal {
                drop(self.sqlite_journal.poison(failure.clone()));
                drop(self.sqlite_catalog.poison(failure.clone()));
                (self.on_fatal)(failure.clone());
            }
        })
    }

    /// Returns whether the database files must be purged.
    pub async fn is_purge_due(&self) -> Result<bool> {
        self.sqlite_catalog.is_purge_due().await
    }

    /// Overwrites what deleted rows left behind in both database files.
    pub async fn purge_deleted(&self) -> Result<()> {
        self.journal.trim(self.journal.ended_contexts().await?).await?;
        self.sqlite_journal.vacuum().await?;
        self.sqlite_catalog.purge_deleted().await
    }

    /// Returns the highest row id of a session. Rows with higher ids are newer than files that are read from now on.
    pub async fn newest_session_row(&self) -> Result<i64> {
        self.sqlite_catalog.newest_session_row().await
    }

    /// Replaces the catalog's rows of the scanned agents by those of `truth`, in one commit. Keeps sessions with row ids
    /// after `mark`, settings and destroyed agents.
    ///
    /// # Errors
    /// Nothing is changed after an error.
    pub async fn rebuild_catalog(&self, truth: DirectoryScan, mark: i64) -> Result<()> {
        self.sqlite_catalog.rebuild(truth, mark).await
    }

    /// Copies the journal as of the last commit to `path`, which must not exist.
    pub async fn copy_journal_to(&self, path: PathBuf) -> Result<()> {
        self.sqlite_journal.copy_to(path).await
    }

    /// Deletes the records of the journal with these row ids, which are in no chain. Must run before contexts are trimmed,
    /// because trimming frees row ids for new records.
    pub async fn delete_unchained_records(&self, rows: Vec<i64>) -> Result<()> {
        self.sqlite_journal.delete_unchained(rows).await
    }

    /// Begins snapshots of both databases, in unnamed files in `dir`. Commits continue meanwhile.
    pub async fn begin_snapshots(&self, dir: &Path) -> Result<PendingSnapshots> {
        Ok(PendingSnapshots {
            journal: self.sqlite_journal.begin_snapshot(dir).await?,
            catalog: self.sqlite_catalog.begin_snapshot(dir).await?,
        })
    }

    /// Frees the pages of the databases that SQLite caches in memory.
    pub async fn release_page_caches(&self) {
        tokio::join!(self.sqlite_journal.release_page_caches(), self.sqlite_catalog.release_page_caches());
    }

    /// Stops the database threads after the queued jobs, and writes a copy of the catalog.
    ///
    /// # Errors
    /// Fails if the copy cannot be written; the databases are closed all the same.
    pub async fn close(&self) -> Result<()> {
        self.sqlite_journal.close().await;
        self.sqlite_catalog.close().await
    }
}
