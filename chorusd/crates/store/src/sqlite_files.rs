//! The two databases of a home as files: what only SQLite needs or offers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::ChainVerifier;
use chorus_journal::Journal as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;

use crate::catalog::{DirectoryScan, SqliteCatalog};
use crate::journal::SqliteJournal;
use crate::snapshot::PendingSnapshots;
use crate::upkeep::Upkeep;

/// The journal (`db/live.db`) and the catalog (`db/chorus.db`) of a home.
#[derive(Debug)]
pub struct SqliteFiles {
    pub(crate) journal: Arc<SqliteJournal>,
    pub(crate) catalog: SqliteCatalog,
}

impl SqliteFiles {
    /// Returns the highest row id of a session. Rows with higher ids are newer than files that are read from now on.
    pub async fn newest_session_row(&self) -> Result<i64> {
        self.catalog.newest_session_row().await
    }

    /// Replaces the catalog's rows of the scanned agents by those of `truth`, in one commit. Keeps sessions with row ids
    /// after `mark`, settings and destroyed agents.
    ///
    /// # Errors
    /// Nothing is changed after an error.
    pub async fn rebuild_catalog(&self, truth: DirectoryScan, mark: i64) -> Result<()> {
        self.catalog.rebuild(truth, mark).await
    }

    /// Copies the journal as of the last commit to `path`, which must not exist.
    pub async fn copy_journal_to(&self, path: PathBuf) -> Result<()> {
        self.journal.copy_to(path).await
    }

    /// Deletes the records of the journal with these row ids, which are in no chain. Must run before contexts are trimmed,
    /// because trimming frees row ids for new records.
    pub async fn delete_unchained_records(&self, rows: Vec<i64>) -> Result<()> {
        self.journal.delete_unchained(rows).await
    }

    /// Begins snapshots of both databases, in unnamed files in `dir`. Commits continue in that time.
    pub async fn begin_snapshots(&self, dir: &Path) -> Result<PendingSnapshots> {
        Ok(PendingSnapshots {
            journal: self.journal.begin_snapshot(dir).await?,
            catalog: self.catalog.begin_snapshot(dir).await?,
        })
    }
}

impl Upkeep for SqliteFiles {
    fn is_purge_due(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(self.catalog.is_purge_due())
    }

    fn purge_deleted(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.journal.trim(self.journal.ended_contexts().await?).await?;
            self.journal.vacuum().await?;
            self.catalog.purge_deleted().await
        })
    }

    fn verify_audit_log(&self) -> BoxFuture<'_, Result<ChainVerifier>> {
        Box::pin(self.verify_audit_chain())
    }

    fn record_lost_audits(&self, now: Timestamp) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.record_cut_audits(now))
    }

    fn release_memory(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            tokio::join!(self.journal.release_page_caches(), self.catalog.release_page_caches());
        })
    }

    fn poison(&self, failure: Error) {
        drop(self.journal.poison(failure.clone()));
        drop(self.catalog.poison(failure));
    }

    /// Stops the threads of the databases, and writes a copy of the catalog.
    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.journal.close().await;
            self.catalog.close().await
        })
    }
}
