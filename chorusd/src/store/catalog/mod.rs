//! The catalog: `db/chorus.db`. Agents and sessions stand in it as an index of what the files say.

mod agents;
mod approvals;
mod audit;
mod audit_chain;
mod branching;
pub mod discord;
mod forget;
pub mod memory;
mod rebuild;
pub(super) mod schema;
mod sessions;
mod settings;
mod summaries;
mod tasks;
mod unused;
mod usage;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;

pub use agents::AgentRow;
pub use approvals::{ApprovalRow, Decided};
pub use audit::{Audit, AuditEntry, AuditFilter};
pub(super) use audit::{each_after, insert as insert_audit, newest as newest_audit};
pub use audit_chain::{AuditHead, Walk, hex};
pub use branching::{Branching, Named};
pub use memory::{MemoryRow, Remembered, Whose};
pub use rebuild::Truth;
pub use sessions::{Listing, Order, SessionRow};
pub use summaries::Wanted;
pub use tasks::{Found, TaskRow};
pub use usage::{CallKind, DayRow, Spent, Sums, UsageFilter, UsageRow};

use super::OnFatal;
use super::copy::DatabaseCopy;
use super::recovery::{self, Tally, Watch};
use super::worker::{Files, Worker};
use super::{salvage, sqlite};
use crate::failure::{Failure, Result};
use crate::redact::Redactor;

/// The catalog.
#[derive(Debug)]
pub struct Catalog {
    writer: Worker,
    reader: Worker,
    path: PathBuf,
    hear_audit: audit_chain::HearAudit,
    redactor: OnceLock<Arc<Redactor>>,
}

impl Catalog {
    /// Opens or makes it. Damage that was found is told as a text.
    pub(super) fn open(path: &Path, on_fatal: &OnFatal, now: Timestamp) -> Result<(Self, Option<String>)> {
        let found = recovery::look_at_catalog(path, now)?;
        let readable = found.as_ref().and_then(recovery::Damaged::readable);
        let carried =
            readable.map_or(Ok(salvage::Carried::default()), |from| salvage::carry(&from, path, schema::MIGRATIONS));
        // Before anything else can fail: the next start finds no damage, and `doctor` tells what is noted.
        let told = found.map(|found| found.settle(carried)).transpose()?;
        let conn = sqlite::open(path, schema::MIGRATIONS)?;
        if told.is_some() {
            sqlite::truncate_log(&conn)?;
        }
        // Rows go rarely, and what they said goes with them.
        conn.pragma_update(None, "secure_delete", "ON")?;
        // Ids are random, so each row dirties pages all over the place: a longer log (16 MiB) takes more changes of a
        // page before it is written to its place.
        conn.pragma_update(None, "wal_autocheckpoint", 4000)?;
        let reader = sqlite::open_reader(path)?;
        let files = Files { watch: Watch::of(path, None)?, tally: Tally::default() };
        let this = Self {
            writer: Worker::writer("catalog", conn, on_fatal.clone(), files)?,
            reader: Worker::reader("catalog-read", reader)?,
            path: path.to_owned(),
            hear_audit: audit_chain::HearAudit::default(),
            redactor: OnceLock::new(),
        };
        Ok((this, told))
    }

    /// Has `hear` told of every row of the audit log that is on the disk, in their order.
    pub(super) fn hear_audits(&self, hear: impl Fn(AuditHead) + Send + Sync + 'static) {
        self.hear_audit.set(hear);
    }

    /// Keeps secrets out of the rows that say what was done.
    pub fn redact(&self, redactor: Arc<Redactor>) {
        let _ = self.redactor.set(redactor);
    }

    /// Acknowledges nothing more: `failure` is fatal.
    pub(super) fn distrust(&self, failure: Failure) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |_| Err(failure))
    }

    /// Begins a copy of the database; see [`DatabaseCopy`].
    pub(super) async fn copy(&self, dir: &Path) -> Result<DatabaseCopy> {
        DatabaseCopy::begin(&self.writer, dir).await
    }

    pub(super) async fn release_memory(&self) {
        tokio::join!(self.reader.release_memory(), self.writer.release_memory());
    }

    /// Ends the threads, and keeps a copy beside the database (`chorus.db.bak`).
    pub(super) async fn close(&self) -> Result<()> {
        let copy = self.path.with_extension("db.bak");
        let copied = self.reader.submit(move |conn| copy_to(conn, &copy)).await;
        self.reader.close().await;
        self.writer.close().await;
        copied
    }
}

/// Copies the last commit into `path`, which is replaced only when the copy is whole.
fn copy_to(conn: &rusqlite::Connection, path: &Path) -> Result<()> {
    let fail = |e: std::io::Error| Failure::io("cannot keep a copy of the catalog", &e);
    let new = path.with_extension("bak.tmp");
    match std::fs::remove_file(&new) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(fail(e)),
        _ => {}
    }
    conn.execute("VACUUM INTO ?1", [new.to_string_lossy()])?;
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600)).map_err(fail)?;
    std::fs::rename(&new, path).map_err(fail)
}
