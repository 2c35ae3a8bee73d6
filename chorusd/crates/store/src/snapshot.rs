//! Snapshots of databases in use. The database thread copies the pages in bounded steps between its commits, so that no
//! other connection is needed and no job waits long. SQLite repeats on the copy the changes that this connection makes
//! to pages copied already.

use std::fs::File;
use std::path::Path;

use chorus_base::error::{Error, Result};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use tokio::sync::oneshot;

use super::db_thread::DbThread;
use crate::sqlite;
use crate::sqlite::StoreResult;

/// Pages that are copied between two commits: 256 KiB.
const PAGES_PER_STEP: i32 = 64;

/// How often the last step is retried while another connection has the database locked.
const MAX_FINISH_RETRIES: usize = 50;

/// A request to a database thread about a snapshot.
pub(super) enum SnapshotRequest {
    Begin(BeginSnapshot),
    /// Copies the remaining pages and replies.
    Finish(oneshot::Sender<Result<()>>),
    Abandon,
}

/// Parameters of a new snapshot.
pub(super) struct BeginSnapshot {
    pub to: Connection,
    /// Receives the outcome once nearly all pages are copied.
    pub ready: oneshot::Sender<Result<()>>,
}

/// Refuses a snapshot while another is in progress.
fn refuse_busy(begin: BeginSnapshot) {
    let _ = begin.ready.send(Err(busy()));
}

fn busy() -> Error {
    Error::new(chorus_proto::ErrorKind::Busy, "another copy of the database is in progress")
        .hint("try again in a moment")
}

/// What a database thread does after a batch.
pub(super) enum AfterBatch {
    Continue,
    Copy(SnapshotRequest),
    /// Stop, then notify the sender.
    Close(oneshot::Sender<()>),
}

/// Copies a database on its thread: calls `serve`, which processes the queued messages, after each bounded step. Once
/// nearly all pages are copied, `serve(true)` waits for messages, until [`SnapshotRequest::Finish`] copies the
/// remaining pages; the snapshot shows that moment. Returns the sender to notify if the thread was told to close.
pub(super) fn run_snapshot(
    conn: &Connection,
    request: SnapshotRequest,
    mut serve: impl FnMut(bool) -> Option<AfterBatch>,
) -> Option<oneshot::Sender<()>> {
    // Other requests concern a snapshot that has ended; dropping the request notifies its sender.
    let SnapshotRequest::Begin(BeginSnapshot { mut to, ready }) = request else { return None };
    let mut copy = ActiveSnapshot::new(conn, &mut to, ready)?;
    loop {
        match serve(copy.is_ready()) {
            Some(AfterBatch::Close(done)) => return Some(done),
            Some(AfterBatch::Copy(SnapshotRequest::Finish(reply))) => {
                copy.finish(reply);
                return None;
            }
            Some(AfterBatch::Copy(SnapshotRequest::Abandon)) => return None,
            Some(AfterBatch::Copy(SnapshotRequest::Begin(another))) => refuse_busy(another),
            // All senders are gone.
            None if copy.is_ready() => return None,
            Some(AfterBatch::Continue) | None => {}
        }
        if !copy.is_ready() && !copy.step() {
            return None;
        }
    }
}

/// A snapshot in progress, on the database thread.
struct ActiveSnapshot<'a> {
    backup: Backup<'a, 'a>,
    /// Taken once the sender was notified.
    ready: Option<oneshot::Sender<Result<()>>>,
}

impl<'a> ActiveSnapshot<'a> {
    /// Starts a snapshot; sends the error to `ready` if that fails.
    fn new(from: &'a Connection, to: &'a mut Connection, ready: oneshot::Sender<Result<()>>) -> Option<Self> {
        // A step of zero pages only counts the pages.
        let begun = Backup::new(from, to).and_then(|backup| backup.step(0).map(|_| backup));
        match begun {
            Ok(backup) => Some(Self { backup, ready: Some(ready) }),
            Err(e) => {
                let _ = ready.send(Err(sqlite::to_error(&e)));
                None
            }
        }
    }

    /// Returns whether only the last step is missing.
    fn is_ready(&self) -> bool {
        self.ready.is_none()
    }

    /// Copies some pages, or notifies `ready`. Returns false after an error, which `ready` has received.
    fn step(&mut self) -> bool {
        let done = if self.backup.progress().remaining > PAGES_PER_STEP {
            self.backup.step(PAGES_PER_STEP)
        } else {
            Ok(StepResult::More)
        };
        let told = match done {
            // The database shrank suddenly and the copy is complete, but the caller decides which moment is copied.
            Ok(StepResult::Done) => Err(busy()),
            Ok(_) if self.backup.progress().remaining > PAGES_PER_STEP => return true,
            Ok(_) => Ok(()),
            Err(e) => Err(sqlite::to_error(&e)),
        };
        let goes_on = told.is_ok();
        if let Some(ready) = self.ready.take() {
            // If nobody receives this, nobody will finish the snapshot.
            return ready.send(told).is_ok() && goes_on;
        }
        goes_on
    }

    /// Copies the remaining pages.
    fn finish(self, reply: oneshot::Sender<Result<()>>) {
        let mut tried = 0;
        let result = loop {
            match self.backup.step(-1) {
                Ok(StepResult::Done) => break Ok(()),
                Ok(_) if tried < MAX_FINISH_RETRIES => {
                    tried += 1;
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                Ok(_) => break Err(busy()),
                Err(e) => break Err(sqlite::to_error(&e)),
            }
        };
        // Ends the transaction in the copy.
        drop(self.backup);
        let _ = reply.send(result);
    }
}

/// A snapshot of one database that waits to be finished. Dropping it aborts it.
#[derive(Debug)]
pub(super) struct PendingSnapshot {
    worker: DbThread,
    file: Option<File>,
}

impl PendingSnapshot {
    /// Copies nearly all pages of the database of `worker` into an unnamed file in `dir`.
    pub(super) async fn begin(worker: &DbThread, dir: &Path) -> Result<Self> {
        let dir = dir.to_owned();
        let opened = chorus_runtime::spawn_blocking(move || open_unnamed_database(&dir)).await;
        let (to, file) = opened.map_err(|e| Error::internal(e.to_string()))??;
        let (ready, answer) = oneshot::channel();
        worker.request_snapshot(SnapshotRequest::Begin(BeginSnapshot { to, ready }))?;
        answer.await.unwrap_or_else(|_| Err(Error::stopping()))?;
        Ok(Self { worker: worker.clone(), file: Some(file) })
    }

    /// Copies the remaining pages. The snapshot shows the database as it is when this returns, or a moment before.
    pub(super) async fn finish(mut self) -> Result<File> {
        let (reply, answer) = oneshot::channel();
        self.worker.request_snapshot(SnapshotRequest::Finish(reply))?;
        answer.await.unwrap_or_else(|_| Err(Error::stopping()))?;
        self.file.take().ok_or_else(|| Error::internal("a copy was finished twice"))
    }
}

impl Drop for PendingSnapshot {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = self.worker.request_snapshot(SnapshotRequest::Abandon);
        }
    }
}

/// Opens a database in a file without a name, so that no crash leaves it behind.
fn open_unnamed_database(dir: &Path) -> StoreResult<(Connection, File)> {
    let failed = |e: std::io::Error| Error::io("cannot start a copy of a database", &e);
    let file = tempfile::Builder::new().prefix(".copy-").tempfile_in(dir).map_err(failed)?;
    let to = Connection::open(file.path())?;
    // The copy is either finished or discarded: it needs no rollback journal and no syncs.
    to.pragma_update(None, "journal_mode", "OFF")?;
    to.pragma_update(None, "synchronous", "OFF")?;
    // Makes SQLite open the file now, while it has a name.
    to.pragma_update(None, "cache_size", -512)?;
    to.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    let (file, path) = file.into_parts();
    path.close().map_err(failed)?;
    Ok((to, file))
}

/// Snapshots of both databases that wait to be finished.
#[derive(Debug)]
pub struct PendingSnapshots {
    pub(super) journal: PendingSnapshot,
    pub(super) catalog: PendingSnapshot,
}

/// Snapshots of both databases, taken at nearly the same moment; the files have no name.
#[derive(Debug)]
pub struct Snapshots {
    pub journal: File,
    pub catalog: File,
}

impl PendingSnapshots {
    /// Finishes the snapshots, the journal's first, so that the catalog's has every session and every row of the audit
    /// log that the journal refers to.
    pub async fn finish(self) -> Result<Snapshots> {
        let journal = self.journal.finish().await?;
        Ok(Snapshots { journal, catalog: self.catalog.finish().await? })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::Arc;

    use super::super::db_thread::FileGuards;
    use super::*;

    fn count(file: &File) -> Result<(i64, String), Box<dyn std::error::Error>> {
        let mut named = tempfile::NamedTempFile::new()?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut &*file, &mut bytes)?;
        named.write_all(&bytes)?;
        let conn = sqlite::open_copy(named.path()).map_err(|e| e.to_string())?;
        let sound = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        Ok((conn.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?, sound))
    }

    #[tokio::test]
    async fn a_copy_shows_what_was_committed_when_it_was_finished() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let conn = Connection::open(dir.path().join("live.db"))?;
        conn.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n INTEGER PRIMARY KEY, x)")?;
        let worker =
            DbThread::writer("test", conn, Arc::new(|_| ()), FileGuards::default()).map_err(|e| e.to_string())?;
        let insert = || worker.submit(|conn| Ok(conn.execute("INSERT INTO t (x) VALUES (randomblob(3000))", [])?));
        for _ in 0..200 {
            insert().await?;
        }
        let copy = PendingSnapshot::begin(&worker, dir.path()).await?;
        assert!(PendingSnapshot::begin(&worker, dir.path()).await.is_err(), "one at a time");
        // These change pages that were copied already.
        for _ in 0..50 {
            insert().await?;
        }
        worker.submit(|conn| Ok(conn.execute("DELETE FROM t WHERE n <= 10", [])?)).await?;
        let file = copy.finish().await?;
        insert().await?;
        assert_eq!(count(&file)?, (240, "ok".to_owned()));
        assert_eq!(
            std::fs::read_dir(dir.path())?.filter_map(Result::ok).filter(|e| e.path().extension().is_none()).count(),
            0
        );
        // Dropping a snapshot allows the next one.
        drop(PendingSnapshot::begin(&worker, dir.path()).await?);
        let file = PendingSnapshot::begin(&worker, dir.path()).await?.finish().await?;
        assert_eq!(count(&file)?, (241, "ok".to_owned()));
        Ok(())
    }
}
