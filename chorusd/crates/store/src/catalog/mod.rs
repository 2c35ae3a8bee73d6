//! The catalog in SQLite: `db/chorus.db`.

mod agents;
mod approvals;
mod audit;
mod capture;
mod discord;
mod file_writes;
mod imported_usage;
mod lineage;
mod memories;
mod newest_sessions;
mod purge;
mod rebuild;
mod schedules;
pub(super) mod schema;
mod session_changes;
mod session_listing;
mod session_names;
mod session_rows;
mod session_sources;
mod sessions;
mod settings;
mod short_ids;
mod stale_sessions;
mod summary_queue;
mod tasks;
mod tool_exports;
mod usage;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::Catalog;
use chorus_redact::Redactor;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use rusqlite::Connection;

use self::agents::SqliteAgentTable;
use self::approvals::SqliteApprovalTable;
use self::audit::{AuditListener, SqliteAuditLog};
use self::capture::SqliteCaptureTable;
use self::file_writes::SqliteFileWriteTable;
use self::imported_usage::SqliteImportedUsageTable;
use self::memories::SqliteMemoryTable;
use self::schedules::SqliteScheduleTable;
use self::sessions::SqliteSessionTable;
use self::settings::SqliteSettingTable;
use self::summary_queue::SqliteSummaryQueue;
use self::tasks::SqliteTaskTable;
use self::tool_exports::SqliteToolExportTable;
use self::usage::SqliteUsageTable;
use super::db_thread::{DbThread, FileGuards};
use super::recovery::{self, CommitCounter, FileWatch};
use super::snapshot::PendingSnapshot;
use super::{OnFatal, catalog_salvage, sqlite};
use crate::sqlite::StoreResult;

pub(super) use audit::{for_each_after, insert as insert_audit, newest_head as newest_audit};
pub use rebuild::DirectoryScan;

/// The catalog of one home.
#[derive(Debug)]
pub(super) struct SqliteCatalog {
    pub(super) tables: Catalog,
    /// The log of `tables`, for the audit anchor.
    pub(super) audit: SqliteAuditLog,
    writer: DbThread,
    reader: DbThread,
    path: PathBuf,
}

/// The threads of the catalog's database, which its tables share.
#[derive(Debug, Clone)]
struct CatalogDb {
    writer: DbThread,
    reader: DbThread,
}

impl CatalogDb {
    /// Queues a job that reads.
    fn read<T, J>(&self, job: J) -> BoxFuture<'static, Result<T>>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> StoreResult<T> + Send + 'static,
    {
        Box::pin(self.reader.submit(job))
    }

    /// Queues a job that writes.
    fn write<T, J>(&self, job: J) -> BoxFuture<'static, Result<T>>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> StoreResult<T> + Send + 'static,
    {
        Box::pin(self.writer.submit(job))
    }
}

impl SqliteCatalog {
    /// Opens or creates the catalog. If it was damaged, also returns the text of a notice about that.
    pub(super) fn open(
        path: &Path,
        on_fatal: &OnFatal,
        now: Timestamp,
        redactor: Arc<Redactor>,
    ) -> StoreResult<(Self, Option<String>)> {
        let found = recovery::inspect_catalog(path, now)?;
        let readable = found.as_ref().and_then(recovery::CatalogDamage::readable_path);
        let carried = readable.map_or(Ok(catalog_salvage::SalvageCounts::default()), |from| {
            catalog_salvage::salvage_rows(&from, path, schema::MIGRATIONS).map_err(Error::from)
        });
        // Settle the incident before anything else can fail: the next start finds no damage any more, so `doctor`
        // depends on this description.
        let told = found.map(|found| found.finish(carried)).transpose()?;
        let conn = sqlite::open(path, schema::MIGRATIONS)?;
        if told.is_some() {
            sqlite::truncate_wal(&conn)?;
        }
        // Rows are deleted rarely, and their contents must not stay in the file.
        conn.pragma_update(None, "secure_delete", "ON")?;
        // Ids are random, so each new row dirties pages all over the file. A longer log (16 MiB) collects more changes
        // of a page before it is checkpointed.
        conn.pragma_update(None, "wal_autocheckpoint", 4000)?;
        // A row in a savepoint changes a dozen pages, and SQLite keeps the old content of each until the savepoint ends.
        // Beyond 64 KiB it would write them to a temporary file, together with every further page of the commit.
        conn.pragma_update(None, "temp_store", "MEMORY")?;
        let changes = Arc::default();
        session_changes::install(&conn, &changes)?;
        let reader = sqlite::open_reader(path)?;
        let files = FileGuards { watch: FileWatch::new(path, None)?, commit_counter: CommitCounter::default() };
        let db = CatalogDb {
            writer: DbThread::writer("catalog", conn, on_fatal.clone(), files)?,
            reader: DbThread::reader("catalog-read", reader)?,
        };
        let audit = SqliteAuditLog { db: db.clone(), listener: AuditListener::default(), redactor };
        let settings = SqliteSettingTable { db: db.clone(), audit: audit.clone() };
        let tables = Catalog {
            agents: Arc::new(SqliteAgentTable { db: db.clone() }),
            sessions: Arc::new(SqliteSessionTable { db: db.clone(), changes }),
            summary_queue: Arc::new(SqliteSummaryQueue { db: db.clone() }),
            memories: Arc::new(SqliteMemoryTable { db: db.clone() }),
            tasks: Arc::new(SqliteTaskTable { db: db.clone() }),
            file_writes: Arc::new(SqliteFileWriteTable { db: db.clone() }),
            approvals: Arc::new(SqliteApprovalTable { db: db.clone(), audit: audit.clone() }),
            audit: Arc::new(audit.clone()),
            usage: Arc::new(SqliteUsageTable { db: db.clone() }),
            imported_usage: Arc::new(SqliteImportedUsageTable { db: db.clone() }),
            settings: Arc::new(settings.clone()),
            capture: Arc::new(SqliteCaptureTable { db: db.clone() }),
            tool_exports: Arc::new(SqliteToolExportTable { db: db.clone() }),
            schedules: Arc::new(SqliteScheduleTable { db: db.clone() }),
            discord: discord::tables(&db, settings),
        };
        Ok((Self { tables, audit, writer: db.writer, reader: db.reader, path: path.to_owned() }, told))
    }

    /// Poisons the writer with the fatal `failure`: it acknowledges nothing more.
    pub(super) fn poison(&self, failure: Error) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |_| Err(failure.into()))
    }

    /// Begins a snapshot of the database; see [`PendingSnapshot`].
    pub(super) async fn begin_snapshot(&self, dir: &Path) -> Result<PendingSnapshot> {
        PendingSnapshot::begin(&self.writer, dir).await
    }

    pub(super) async fn release_page_caches(&self) {
        tokio::join!(self.reader.release_page_cache(), self.writer.release_page_cache());
    }

    /// Stops the threads, and writes a copy next to the database (`chorus.db.bak`).
    pub(super) async fn close(&self) -> Result<()> {
        let copy = self.path.with_extension("db.bak");
        let copied = self.reader.submit(move |conn| write_copy(conn, &copy)).await;
        self.reader.close().await;
        self.writer.close().await;
        copied
    }
}

/// Copies the last commit to `path`, which is replaced atomically once the copy is complete.
fn write_copy(conn: &Connection, path: &Path) -> StoreResult<()> {
    let fail = |e: std::io::Error| Error::io("cannot store a copy of the catalog", &e);
    let new = path.with_extension("bak.tmp");
    match std::fs::remove_file(&new) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(fail(e).into()),
        _ => {}
    }
    conn.execute("VACUUM INTO ?1", [new.to_string_lossy()])?;
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).map_err(fail)?;
    Ok(std::fs::rename(&new, path).map_err(fail)?)
}
