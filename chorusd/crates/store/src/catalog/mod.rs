//! The catalog: `db/chorus.db`. Indexes the files of agents and sessions, and stores everything else that is kept in
//! rows.

mod agents;
mod approvals;
mod audit;
mod audit_chain;
mod capture;
pub mod discord;
mod file_writes;
mod imported_usage;
mod lineage;
pub mod memories;
mod rebuild;
pub(super) mod schema;
mod session_changes;
mod session_listing;
mod session_names;
mod session_purge;
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
use chorus_redact::Redactor;
use jiff::Timestamp;

use super::db_thread::{DbThread, FileGuards};
use super::recovery::{self, CommitCounter, FileWatch};
use super::snapshot::PendingSnapshot;
use super::{OnFatal, catalog_salvage, sqlite};
use crate::sqlite::StoreResult;
pub use agents::{AgentRow, AgentTable};
pub use approvals::{ApprovalRow, ApprovalTable, DecidedApproval};
pub use audit::{AuditDecision, AuditEntry, AuditFilter, AuditLog};
pub(super) use audit::{for_each_after, insert as insert_audit, newest_head as newest_audit};
pub use audit_chain::{AuditHead, ChainVerifier};
pub use capture::{CaptureTable, CapturedFile, SkippedLine};
pub use file_writes::{FileHash, FileHistory, FileWriteRow, FileWriteTable};
pub use imported_usage::{
    ImportedCallRow, ImportedDivision, ImportedSums, ImportedUsage, ImportedUsageFilter, ImportedUsageRow,
    ImportedUsageTable,
};
pub use lineage::{LineageRow, LineageSource, SessionName};
pub use memories::{MemoryRow, MemoryScope, MemoryTable, RememberOutcome};
pub use rebuild::DirectoryScan;
pub use session_changes::{ChangedRows, SessionChanges, SessionStamp};
pub use sessions::{ProjectFilter, SessionPlacement, SessionQuery, SessionRow, SessionTable, place_of};
pub use settings::SettingTable;
pub use short_ids::ShortId;
pub use summary_queue::{PendingSummary, SummaryQueue};
pub use tasks::{TaskRow, TaskTable, TasksAtStart};
pub use tool_exports::{ToolExport, ToolExportTable};
pub use usage::{CallKind, DailyUsageRow, Spending, UsageFilter, UsageRow, UsageTable, UsageTotals};

/// The catalog with its tables. Code that needs one table takes that table, not the catalog.
#[derive(Debug)]
pub struct Catalog {
    pub agents: AgentTable,
    pub sessions: SessionTable,
    pub summary_queue: SummaryQueue,
    pub memories: MemoryTable,
    pub tasks: TaskTable,
    pub file_writes: FileWriteTable,
    pub approvals: ApprovalTable,
    pub audit: AuditLog,
    pub usage: UsageTable,
    pub imported_usage: ImportedUsageTable,
    pub settings: SettingTable,
    pub capture: CaptureTable,
    pub tool_exports: ToolExportTable,
    pub discord: discord::DiscordTables,
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

impl Catalog {
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
        let audit = AuditLog { db: db.clone(), listener: audit_chain::AuditListener::default(), redactor };
        let settings = SettingTable { db: db.clone(), audit: audit.clone() };
        let catalog = Self {
            agents: AgentTable { db: db.clone() },
            sessions: SessionTable { db: db.clone(), changes },
            summary_queue: SummaryQueue { db: db.clone() },
            memories: MemoryTable { db: db.clone() },
            tasks: TaskTable { db: db.clone() },
            file_writes: FileWriteTable { db: db.clone() },
            approvals: ApprovalTable { db: db.clone(), audit: audit.clone() },
            usage: UsageTable { db: db.clone() },
            imported_usage: ImportedUsageTable { db: db.clone() },
            capture: CaptureTable { db: db.clone() },
            tool_exports: ToolExportTable { db: db.clone() },
            discord: discord::DiscordTables::new(&db, settings.clone()),
            settings,
            audit,
            writer: db.writer,
            reader: db.reader,
            path: path.to_owned(),
        };
        Ok((catalog, told))
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

    /// Stops the threads, and writes a copy beside the database (`chorus.db.bak`).
    pub(super) async fn close(&self) -> Result<()> {
        let copy = self.path.with_extension("db.bak");
        let copied = self.reader.submit(move |conn| write_copy(conn, &copy)).await;
        self.reader.close().await;
        self.writer.close().await;
        copied
    }
}

/// Copies the last commit to `path`, which is replaced atomically once the copy is complete.
fn write_copy(conn: &rusqlite::Connection, path: &Path) -> StoreResult<()> {
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
