//! Threads that own a database connection. The writer commits all waiting jobs together, so that many callers share one
//! fsync; the reader sees the last commit and never waits for the writer.

use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use rusqlite::Connection;
use tokio::sync::oneshot;

use self::writer::WriterThread;
use super::OnFatal;
use super::recovery::{CommitCounter, FileWatch};
use super::snapshot::SnapshotRequest;
use super::sqlite::{self, StoreError, StoreResult, is_fatal};

mod writer;

/// Limit of queued jobs; further ones fail with `busy`.
const MAX_QUEUED_JOBS: usize = 8192;

/// Limit of jobs in one commit.
const MAX_JOBS_PER_COMMIT: usize = 1024;

/// How long the writer waits for further jobs if all that it has can wait. A commit of many rows writes the index pages
/// that they share only once.
const DEFERRED_COMMIT_DELAY: Duration = Duration::from_millis(10);

/// How often the database files are compared with their paths while nothing is committed.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Guards of the files of a database that a writer has open.
#[derive(Debug, Default)]
pub(crate) struct FileGuards {
    /// Compares the open files with their paths.
    pub watch: FileWatch,
    /// Counts the commits in the database and in the progress file beside it.
    pub commit_counter: CommitCounter,
}

/// Sends a job's result, which is held back until the outcome of the commit is known.
type Finish = Box<dyn FnOnce(Result<()>) + Send>;

struct CompletedJob {
    /// Set if the job failed and its changes must be undone.
    failed: Option<Error>,
    finish: Finish,
}

/// Runs with the connection, or receives the error that prevents it.
type Job = Box<dyn FnOnce(Result<&Connection>) -> CompletedJob + Send>;

enum Message {
    Job(Job),
    /// A job that can wait a moment for others like it.
    Deferred(Job),
    /// A job without a savepoint: it can be undone alone only if it has changed nothing.
    WithoutSavepoint(Job),
    /// Runs outside of any transaction.
    OutsideTransaction(Job),
    /// Copies the database in steps, between the other jobs. Boxed, because a queue reserves space for all messages that it
    /// may ever hold.
    Copy(Box<SnapshotRequest>),
    Close(oneshot::Sender<()>),
}

/// Error of a job that runs outside of a transaction. Such a job writes to the disk itself, so an I/O error in it is as
/// fatal as one in a commit.
#[derive(Debug)]
pub(crate) struct OutsideTransactionError(Error);

impl From<rusqlite::Error> for OutsideTransactionError {
    fn from(error: rusqlite::Error) -> Self {
        Self(Error { fatal: is_fatal(&error), ..sqlite::to_error(&error) })
    }
}

impl From<Error> for OutsideTransactionError {
    fn from(failure: Error) -> Self {
        Self(failure)
    }
}

/// Truncates the write-ahead log, so that nothing is left there of deleted rows.
///
/// # Errors
/// `busy` if a reader prevented it.
pub(crate) fn erase_wal(conn: &Connection) -> Result<(), OutsideTransactionError> {
    let is_busy: bool = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if is_busy {
        return Err(Error::new(ErrorKind::Busy, "the database is being read").into());
    }
    Ok(())
}

/// Handle of a database thread.
#[derive(Debug, Clone)]
pub(crate) struct DbThread {
    queue: SyncSender<Message>,
    broken: Poison,
    /// File name of the thread's database.
    file: &'static str,
}

/// The error after which nothing is acknowledged any more; unset while storage works.
type Poison = Arc<OnceLock<Error>>;

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Job(_) => "Job",
            Self::Deferred(_) => "Deferred",
            Self::WithoutSavepoint(_) => "Checked",
            Self::OutsideTransaction(_) => "Alone",
            Self::Copy(_) => "Copy",
            Self::Close(_) => "Close",
        })
    }
}

impl DbThread {
    /// Spawns a thread that commits jobs in batches.
    pub(crate) fn writer(name: &str, conn: Connection, on_fatal: OnFatal, files: FileGuards) -> Result<Self> {
        let broken = Poison::default();
        Self::spawn(name, MAX_QUEUED_JOBS, broken.clone(), move |jobs| {
            WriterThread { conn, on_fatal, broken, files }.run(&jobs)
        })
    }

    /// Spawns a thread that only reads.
    pub(crate) fn reader(name: &str, conn: Connection) -> Result<Self> {
        Self::reader_with_queue(name, conn, MAX_QUEUED_JOBS)
    }

    /// As [`DbThread::reader`], with at most `queued` waiting jobs.
    pub(crate) fn reader_with_queue(name: &str, conn: Connection, queued: usize) -> Result<Self> {
        Self::spawn(name, queued, Poison::default(), move |jobs| {
            while let Ok(message) = jobs.recv() {
                match message {
                    Message::Job(job)
                    | Message::Deferred(job)
                    | Message::WithoutSavepoint(job)
                    | Message::OutsideTransaction(job) => (job(Ok(&conn)).finish)(Ok(())),
                    // Only the writer makes snapshots, because its own commits reach the copy.
                    Message::Copy(_) => {}
                    Message::Close(done) => {
                        drop(conn);
                        let _ = done.send(());
                        return;
                    }
                }
            }
        })
    }

    fn spawn(
        name: &str,
        queued: usize,
        broken: Poison,
        body: impl FnOnce(Receiver<Message>) + Send + 'static,
    ) -> Result<Self> {
        let (queue, jobs) = mpsc::sync_channel(queued);
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || body(jobs))
            .map_err(|e| Error::io("cannot start a thread", &e))?;
        let file = if name.starts_with("journal") { super::JOURNAL_FILE } else { super::CATALOG_FILE };
        Ok(Self { queue, broken, file })
    }

    /// Returns the error that poisoned the thread, if there is one. Does not ask the thread.
    pub(crate) fn ensure_healthy(&self) -> Result<()> {
        self.broken.get().cloned().map_or(Ok(()), Err)
    }

    /// Queues `job`; jobs run in the order of these calls. The future yields the job's result once its commit is
    /// durable.
    pub(crate) fn submit<T, J>(&self, job: J) -> impl Future<Output = Result<T>> + Send + use<T, J>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> StoreResult<T> + Send + 'static,
    {
        self.enqueue(Message::Job, job, reply_only)
    }

    /// As [`DbThread::submit`], for hundreds of jobs that are not urgent: the writer waits up to 10 ms for more of them
    /// before it commits, unless a job comes that cannot wait.
    pub(crate) fn submit_deferred<T, J>(&self, job: J) -> impl Future<Output = Result<T>> + Send + use<T, J>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> StoreResult<T> + Send + 'static,
    {
        self.enqueue(Message::Deferred, job, reply_only)
    }

    /// As [`DbThread::submit`], for many small jobs that validate before they change anything, or that change only one
    /// thing. They run without a savepoint each, so a job that fails after a change fails its whole batch.
    pub(crate) fn submit_without_savepoint<T, J>(&self, job: J) -> impl Future<Output = Result<T>> + Send + use<T, J>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> StoreResult<T> + Send + 'static,
    {
        self.enqueue(Message::WithoutSavepoint, job, reply_only)
    }

    /// As [`DbThread::submit_without_savepoint`], for a job that also returns what subscribers are told. `publish` runs
    /// after the commit and after the future has its result: a caller that applies the result before it serves other
    /// requests shows each subscriber at least what the subscriber was told. Runs on the database thread, in the order
    /// of the jobs.
    pub(crate) fn submit_and_publish<T, N, J, P>(
        &self,
        job: J,
        publish: P,
    ) -> impl Future<Output = Result<T>> + Send + use<T, N, J, P>
    where
        T: Send + 'static,
        N: Send + 'static,
        J: FnOnce(&Connection) -> StoreResult<(T, N)> + Send + 'static,
        P: FnOnce(N) + Send + 'static,
    {
        self.enqueue(Message::WithoutSavepoint, job, |(value, news)| (value, move || publish(news)))
    }

    /// As [`DbThread::submit_and_publish`], for a job with a savepoint.
    pub(crate) fn submit_with_savepoint_and_publish<T, N, J, P>(
        &self,
        job: J,
        publish: P,
    ) -> impl Future<Output = Result<T>> + Send + use<T, N, J, P>
    where
        T: Send + 'static,
        N: Send + 'static,
        J: FnOnce(&Connection) -> StoreResult<(T, N)> + Send + 'static,
        P: FnOnce(N) + Send + 'static,
    {
        self.enqueue(Message::Job, job, |(value, news)| (value, move || publish(news)))
    }

    /// As [`DbThread::submit`]. `then` runs after the commit and before the future has its result, on the database
    /// thread and in the order of the jobs.
    pub(crate) fn submit_with_callback<T, J, A>(
        &self,
        job: J,
        then: A,
    ) -> impl Future<Output = Result<T>> + Send + use<T, J, A>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> StoreResult<T> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
    {
        self.enqueue(Message::Job, job, |value| {
            then(&value);
            reply_only(value)
        })
    }

    /// As [`DbThread::submit`], for statements that SQLite does not allow inside a transaction.
    pub(crate) fn submit_outside_transaction<T, J>(&self, job: J) -> impl Future<Output = Result<T>> + Send + use<T, J>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> Result<T, OutsideTransactionError> + Send + 'static,
    {
        self.enqueue(
            Message::OutsideTransaction,
            |conn| job(conn).map_err(|OutsideTransactionError(failure)| StoreError(failure)),
            reply_only,
        )
    }

    /// Queues `job`. `split` gets what a committed job returned and returns the result of the future and what runs
    /// after the future has it.
    fn enqueue<T, R, J, S, A>(
        &self,
        kind: fn(Job) -> Message,
        job: J,
        split: S,
    ) -> impl Future<Output = Result<R>> + Send + use<T, R, J, S, A>
    where
        T: Send + 'static,
        R: Send + 'static,
        J: FnOnce(&Connection) -> StoreResult<T> + Send + 'static,
        S: FnOnce(T) -> (R, A) + Send + 'static,
        A: FnOnce(),
    {
        let (reply, answer) = oneshot::channel();
        let file = self.file;
        let run = move |conn: Result<&Connection>| {
            let result = conn.and_then(|conn| Ok(job(conn)?));
            CompletedJob {
                failed: result.as_ref().err().cloned(),
                finish: Box::new(move |commit: Result<()>| {
                    let result = result.and_then(|value| commit.map(|()| value));
                    match result {
                        Ok(value) => {
                            let (value, then) = split(value);
                            let _ = reply.send(Ok(value));
                            then();
                        }
                        Err(failure) => _ = reply.send(Err(sqlite::name_database(failure, file))),
                    }
                }),
            }
        };
        let queued = self.send(kind(Box::new(run)));
        async move {
            queued?;
            answer.await.unwrap_or_else(|_| Err(Error::stopping()))
        }
    }

    /// Frees the pages that the connection caches, unless the queue is full.
    pub(crate) async fn release_page_cache(&self) {
        let released = self.submit_outside_transaction(|conn| Ok(conn.execute_batch("PRAGMA shrink_memory")?)).await;
        if let Err(failure) = released {
            tracing::debug!(%failure, "cannot release the cached pages of a database");
        }
    }

    /// Sends a request about a snapshot to the thread; see [`snapshot::PendingSnapshot`].
    pub(super) fn request_snapshot(&self, request: SnapshotRequest) -> Result<()> {
        self.send(Message::Copy(Box::new(request)))
    }

    fn send(&self, message: Message) -> Result<()> {
        self.queue.try_send(message).map_err(|e| match e {
            TrySendError::Full(_) => Error::busy(),
            TrySendError::Disconnected(_) => Error::stopping(),
        })
    }

    /// Stops the thread after the jobs that are already queued.
    pub(crate) async fn close(&self) {
        let (reply, done) = oneshot::channel();
        let queue = self.queue.clone();
        let sent = chorus_runtime::spawn_blocking(move || queue.send(Message::Close(reply)).is_ok()).await;
        if matches!(sent, Ok(true)) {
            let _ = done.await;
        }
    }
}

/// The split of jobs after which nothing runs.
fn reply_only<T>(value: T) -> (T, fn()) {
    (value, || ())
}

#[cfg(test)]
mod tests;
