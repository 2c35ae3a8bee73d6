//! Everything that lasts: the journal of live contexts, the catalog of agents and sessions, and session files.
//!
//! The face is asynchronous and names no SQLite type, so that another database or an object store may stand behind
//! it one day.

mod audit_anchor;
mod batch_sync;
pub mod catalog;
mod catalog_salvage;
mod db_thread;
pub mod integrity;
pub mod journal;
pub mod private_fs;
pub mod recovery;
pub mod reservations;
pub mod session_files;
mod session_header_update;
pub mod session_index;
mod snapshot;
mod sqlite;
mod thread_pool;
pub mod trash;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

pub use batch_sync::syncfs_covers as syncs_whole_file_system;
pub use catalog::Catalog;
pub use journal::Journal;
pub use session_files::SessionFiles;
pub use snapshot::{PendingSnapshots, Snapshots};

use crate::error::{Error, Result};

/// When a commit is on the disk for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Before it is answered.
    Always,
    /// At the end of each interval; a power failure may lose what came since.
    Interval(Duration),
}

/// Told once when storage can no longer be trusted: a sync failed, so nothing more may be acknowledged.
pub type OnFatal = Arc<dyn Fn(Error) + Send + Sync>;

/// Where the databases are, below the home.
pub const DB_DIR: &str = "db";

/// Name of the journal's database.
pub const JOURNAL_FILE: &str = "live.db";

/// Name of the catalog's database.
pub const CATALOG_FILE: &str = "chorus.db";

/// The store of one home.
pub struct Store {
    pub journal: Journal,
    pub catalog: Catalog,
    pub files: SessionFiles,
    on_fatal: OnFatal,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    /// Opens or makes the databases below `home`. Blocks.
    ///
    /// # Errors
    /// A database that cannot be opened, or is of a newer schema; a journal that is missing where there was one.
    pub fn open(home: &Path, durability: Durability, on_fatal: &OnFatal, now: Timestamp) -> Result<Self> {
        let db = home.join(DB_DIR);
        recovery::refuse_missing(home)?;
        let journal = Journal::open(&db.join(JOURNAL_FILE), durability, on_fatal, now)?;
        let (catalog, damaged) = Catalog::open(&db.join(CATALOG_FILE), on_fatal, now)?;
        if let Some(text) = damaged {
            tracing::error!("{text}");
            journal.emit_notice(&text, now);
        }
        let store = Self { journal, catalog, files: SessionFiles::default(), on_fatal: on_fatal.clone() };
        store.start_audit_anchor();
        Ok(store)
    }

    /// Passes on what came of work with files; where a sync failed in it, the daemon ends.
    ///
    /// # Errors
    /// That of `result`.
    pub fn escalate_fatal<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|failure| {
            if failure.fatal {
                drop(self.journal.poison(failure.clone()));
                drop(self.catalog.poison(failure.clone()));
                (self.on_fatal)(failure.clone());
            }
        })
    }

    /// Cleans the databases of what was deleted.
    ///
    /// # Errors
    /// A database that cannot be written.
    pub async fn purge_deleted(&self) -> Result<()> {
        self.journal.trim(self.journal.ended_contexts().await?).await?;
        self.journal.vacuum().await?;
        self.catalog.purge_deleted().await
    }

    /// Begins copies of both databases, which wait in unnamed files in `dir`. Commits go on meanwhile.
    ///
    /// # Errors
    /// `disk_full`, `busy`, `storage_failed`.
    pub async fn begin_snapshots(&self, dir: &Path) -> Result<PendingSnapshots> {
        Ok(PendingSnapshots {
            journal: self.journal.begin_snapshot(dir).await?,
            catalog: self.catalog.begin_snapshot(dir).await?,
        })
    }

    /// Lets go of what is kept in memory of the databases' files.
    pub async fn release_page_caches(&self) {
        tokio::join!(self.journal.release_page_caches(), self.catalog.release_page_caches());
    }

    /// Ends the writers after what is queued, and keeps a copy of the catalog.
    ///
    /// # Errors
    /// Where the copy cannot be made; the databases are closed all the same.
    pub async fn close(&self) -> Result<()> {
        self.journal.close().await;
        self.catalog.close().await
    }
}
