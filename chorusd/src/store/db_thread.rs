//! Threads that own a database connection. The writer commits all waiting jobs together, so that many callers share one
//! fsync; the reader sees the last commit and never waits for the writer.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use chorus_proto::ErrorKind;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::oneshot;

use super::OnFatal;
use super::recovery::{CommitCounter, FileWatch};
use super::snapshot::{self, AfterBatch, SnapshotRequest};
use super::sqlite::{self, is_fatal};
use crate::error::{Error, MAYBE_STORED_HINT, Result};

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
pub struct FileGuards {
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
    /// Copies the database in steps, between the other jobs.
    Copy(SnapshotRequest),
    Close(oneshot::Sender<()>),
}

/// Error of a job that runs outside of a transaction. Such a job writes to the disk itself, so an I/O error in it is as
/// fatal as one in a commit.
#[derive(Debug)]
pub struct OutsideTransactionError(Error);

impl From<rusqlite::Error> for OutsideTransactionError {
    fn from(error: rusqlite::Error) -> Self {
        Self(Error { fatal: is_fatal(&error), ..Error::from_sqlite(&error) })
    }
}

impl From<Error> for OutsideTransactionError {
    fn from(failure: Error) -> Self {
        Self(failure)
    }
}

/// Handle of a database thread.
#[derive(Debug, Clone)]
pub struct DbThread {
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
    pub fn writer(name: &str, conn: Connection, on_fatal: OnFatal, files: FileGuards) -> Result<Self> {
        let broken = Poison::default();
        Self::spawn(name, broken.clone(), move |jobs| WriterThread { conn, on_fatal, broken, files }.run(&jobs))
    }

    /// Spawns a thread that only reads.
    pub fn reader(name: &str, conn: Connection) -> Result<Self> {
        Self::spawn(name, Poison::default(), move |jobs| {
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

    fn spawn(name: &str, broken: Poison, body: impl FnOnce(Receiver<Message>) + Send + 'static) -> Result<Self> {
        let (queue, jobs) = mpsc::sync_channel(MAX_QUEUED_JOBS);
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || body(jobs))
            .map_err(|e| Error::io("cannot start a thread", &e))?;
        let file = if name.starts_with("journal") { super::JOURNAL_FILE } else { super::CATALOG_FILE };
        Ok(Self { queue, broken, file })
    }

    /// Returns the error that poisoned the thread, if there is one. Does not ask the thread.
    pub fn ensure_healthy(&self) -> Result<()> {
        self.broken.get().cloned().map_or(Ok(()), Err)
    }

    /// Queues `job`; jobs run in the order of these calls. The future yields the job's result once its commit is
    /// durable.
    pub fn submit<T, J>(&self, job: J) -> impl Future<Output = Result<T>> + Send + use<T, J>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.enqueue(Message::Job, job, |_: &T| ())
    }

    /// As [`DbThread::submit`], for hundreds of jobs that are not urgent: the writer waits up to 10 ms for more of them
    /// before it commits, unless a job comes that cannot wait.
    pub fn submit_deferred<T, J>(&self, job: J) -> impl Future<Output = Result<T>> + Send + use<T, J>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.enqueue(Message::Deferred, job, |_: &T| ())
    }

    /// As [`DbThread::submit`], for many small jobs that validate before they change anything, or that change only one
    /// thing. They run without a savepoint each, so a job that fails after a change fails its whole batch. `then` runs
    /// right after the commit, on the database thread and in the order of the jobs.
    pub fn submit_without_savepoint<T, J, A>(
        &self,
        job: J,
        then: A,
    ) -> impl Future<Output = Result<T>> + Send + use<T, J, A>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> Result<T> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
    {
        self.enqueue(Message::WithoutSavepoint, job, then)
    }

    /// As [`DbThread::submit`]; `then` runs as in [`DbThread::submit_without_savepoint`].
    pub fn submit_with_callback<T, J, A>(
        &self,
        job: J,
        then: A,
    ) -> impl Future<Output = Result<T>> + Send + use<T, J, A>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> Result<T> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
    {
        self.enqueue(Message::Job, job, then)
    }

    /// As [`DbThread::submit`], for statements that SQLite does not allow inside a transaction.
    pub fn submit_outside_transaction<T, J>(&self, job: J) -> impl Future<Output = Result<T>> + Send + use<T, J>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> Result<T, OutsideTransactionError> + Send + 'static,
    {
        self.enqueue(
            Message::OutsideTransaction,
            |conn| job(conn).map_err(|OutsideTransactionError(failure)| failure),
            |_: &T| (),
        )
    }

    fn enqueue<T, J, A>(
        &self,
        kind: fn(Job) -> Message,
        job: J,
        then: A,
    ) -> impl Future<Output = Result<T>> + Send + use<T, J, A>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> Result<T> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let file = self.file;
        let run = move |conn: Result<&Connection>| {
            let result = conn.and_then(job);
            CompletedJob {
                failed: result.as_ref().err().cloned(),
                finish: Box::new(move |commit: Result<()>| {
                    let result = result.and_then(|value| commit.map(|()| value));
                    let result = result.map_err(|failure| sqlite::name_database(failure, file));
                    if let Ok(value) = &result {
                        then(value);
                    }
                    let _ = reply.send(result);
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
    pub async fn release_page_cache(&self) {
        let released = self.submit_outside_transaction(|conn| Ok(conn.execute_batch("PRAGMA shrink_memory")?)).await;
        if let Err(failure) = released {
            tracing::debug!(%failure, "pages of a database stay in memory");
        }
    }

    /// Sends a request about a snapshot to the thread; see [`snapshot::PendingSnapshot`].
    pub(super) fn request_snapshot(&self, request: SnapshotRequest) -> Result<()> {
        self.send(Message::Copy(request))
    }

    fn send(&self, message: Message) -> Result<()> {
        self.queue.try_send(message).map_err(|e| match e {
            TrySendError::Full(_) => Error::busy(),
            TrySendError::Disconnected(_) => Error::stopping(),
        })
    }

    /// Stops the thread after the jobs that are already queued.
    pub async fn close(&self) {
        let (reply, done) = oneshot::channel();
        let queue = self.queue.clone();
        let sent = tokio::task::spawn_blocking(move || queue.send(Message::Close(reply)).is_ok()).await;
        if matches!(sent, Ok(true)) {
            let _ = done.await;
        }
    }
}

struct WriterThread {
    conn: Connection,
    on_fatal: OnFatal,
    broken: Poison,
    /// Declared after the connection so that it is dropped later: its lock must outlive SQLite's locks.
    files: FileGuards,
}

impl WriterThread {
    /// Returns the next message, or `None` once all senders are gone. Checks the files periodically while the queue is
    /// empty.
    fn next_message(&self, jobs: &Receiver<Message>) -> Option<Message> {
        loop {
            if self.files.watch.is_empty() || self.broken.get().is_some() {
                return jobs.recv().ok();
            }
            match jobs.recv_timeout(FILE_CHECK_INTERVAL) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    if self.poison_on_error(self.files.watch.check_before_commit()).is_err() {
                        self.report_if_poisoned();
                    }
                }
            }
        }
    }

    /// Poisons the thread if a check of the files failed. SQLite must then skip the checkpoint on close, because it
    /// would write into files that belong to somebody else.
    fn poison_on_error(&self, result: Result<()>) -> Result<()> {
        result.inspect_err(|failure| {
            self.poison(failure.clone());
            let _ = self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        })
    }

    /// Checks the files after a commit and before it is acknowledged.
    fn check_committed_files(&self) -> Result<()> {
        // The commit is on the disk, although possibly in a file that was moved away.
        self.poison_on_error(self.files.watch.check_after_commit())
            .map_err(|failure| failure.hint(MAYBE_STORED_HINT))?;
        self.files.commit_counter.record_commit();
        Ok(())
    }

    fn run(self, jobs: &Receiver<Message>) {
        let closing = self.serve(jobs);
        if self.broken.get().is_none() {
            self.files.commit_counter.close();
        }
        drop(self);
        if let Some(done) = closing {
            let _ = done.send(());
        }
    }

    /// Processes messages until the writer is told to close or all senders are gone.
    fn serve(&self, jobs: &Receiver<Message>) -> Option<oneshot::Sender<()>> {
        loop {
            let first = self.next_message(jobs)?;
            let closing = match self.process_batch(first, jobs) {
                AfterBatch::Continue => None,
                AfterBatch::Close(done) => Some(done),
                AfterBatch::Copy(request) => snapshot::run_snapshot(&self.conn, request, |wait| {
                    let message = if wait { self.next_message(jobs) } else { jobs.try_recv().ok() };
                    message.map(|message| self.process_batch(message, jobs))
                }),
            };
            if closing.is_some() {
                return closing;
            }
        }
    }

    /// Processes `first` and the messages queued behind it; adjacent jobs share one commit. If all of them are
    /// deferred, waits for more.
    fn process_batch(&self, first: Message, jobs: &Receiver<Message>) -> AfterBatch {
        let mut group = Vec::new();
        let mut next = Some(first);
        let (mut after, mut alone) = (AfterBatch::Continue, None);
        let mut wait_until = Some(Instant::now() + DEFERRED_COMMIT_DELAY);
        while let Some(message) = next.take() {
            if !matches!(message, Message::Deferred(_)) {
                wait_until = None;
            }
            match message {
                Message::Job(job) | Message::Deferred(job) => group.push((job, false)),
                Message::WithoutSavepoint(job) => group.push((job, true)),
                Message::OutsideTransaction(job) => {
                    alone = Some(job);
                    break;
                }
                Message::Copy(request) => {
                    after = AfterBatch::Copy(request);
                    break;
                }
                Message::Close(done) => {
                    after = AfterBatch::Close(done);
                    break;
                }
            }
            if group.len() < MAX_JOBS_PER_COMMIT {
                let wait = |until: Instant| jobs.recv_timeout(until.saturating_duration_since(Instant::now())).ok();
                next = jobs.try_recv().ok().or_else(|| wait_until.and_then(wait));
            }
        }
        if !group.is_empty() {
            self.commit_batch(&mut group);
        }
        if let Some(job) = alone {
            self.run_outside_transaction(job);
        }
        after
    }

    fn run_outside_transaction(&self, job: Job) {
        let before = match self.broken.get() {
            Some(failure) => Err(failure.clone()),
            None => self.poison_on_error(self.files.watch.check_before_commit()),
        };
        let CompletedJob { failed, finish } = job(before.map(|()| &self.conn));
        if let Some(failure) = failed.filter(|failure| failure.fatal) {
            self.poison(failure);
        }
        finish(match self.broken.get() {
            Some(failure) => Err(failure.clone()),
            None => self.check_committed_files(),
        });
        self.report_if_poisoned();
    }

    /// Stores the error that stops all acknowledgements. The first one wins.
    fn poison(&self, failure: Error) {
        let _ = self.broken.set(failure);
    }

    fn report_if_poisoned(&self) {
        if let Some(failure) = self.broken.get() {
            (self.on_fatal)(failure.clone());
        }
    }

    fn commit_batch(&self, group: &mut Vec<(Job, bool)>) {
        let mut finished = Vec::with_capacity(group.len());
        let alone = group.len() == 1;
        let mut jobs = group.drain(..);
        let outcome = match self.run_transaction(alone, &mut jobs, &mut finished) {
            Ok(()) => self.check_committed_files(),
            Err(failure) => {
                // A commit that ran out of space or was rolled back may still have written to the WAL.
                if self.broken.get().is_none() {
                    let _ = self.poison_on_error(self.files.watch.check_after_commit());
                }
                Err(failure)
            }
        };
        if let Err(failure) = &outcome {
            finished.extend(jobs.map(|(job, _)| job(Err(failure.clone()))));
        }
        for done in finished {
            (done.finish)(outcome.clone());
        }
        self.report_if_poisoned();
    }

    fn run_transaction(
        &self,
        alone: bool,
        jobs: &mut impl Iterator<Item = (Job, bool)>,
        finished: &mut Vec<CompletedJob>,
    ) -> Result<()> {
        if let Some(failure) = self.broken.get() {
            return Err(failure.clone());
        }
        self.poison_on_error(self.files.watch.check_before_commit())?;
        self.execute_or_rollback("BEGIN IMMEDIATE")?;
        self.files.commit_counter.reset();
        let before = self.conn.total_changes();
        for (job, checked) in jobs {
            let savepoint = !alone && !checked;
            if savepoint {
                self.execute_or_rollback("SAVEPOINT job")?;
            }
            let changes = self.conn.total_changes();
            let done = job(Ok(&self.conn));
            let failed = done.failed.clone();
            finished.push(done);
            match failed {
                // A sync failed elsewhere: from here on nothing is acknowledged.
                Some(failure) if failure.fatal => {
                    self.poison(failure.clone());
                    self.execute_or_rollback("ROLLBACK")?;
                    return Err(failure);
                }
                // SQLite rolled the whole transaction back by itself, as it does when the disk is full.
                Some(failure) if self.conn.is_autocommit() => {
                    if failure.kind == ErrorKind::StorageFailed {
                        self.poison(failure.clone());
                    }
                    return Err(failure);
                }
                Some(_) if alone => return self.execute_or_rollback("ROLLBACK"),
                Some(_) if savepoint => {
                    self.execute_or_rollback("ROLLBACK TO job")?;
                    self.execute_or_rollback("RELEASE job")?;
                }
                Some(_) if self.conn.total_changes() == changes => {}
                Some(failure) => {
                    self.execute_or_rollback("ROLLBACK")?;
                    return Err(failure);
                }
                None if savepoint => self.execute_or_rollback("RELEASE job")?,
                None => {}
            }
        }
        if self.conn.total_changes() != before {
            self.count_commit()?;
        }
        self.execute_or_rollback("COMMIT")
    }

    /// Counts the transaction; rolls it back if that fails.
    fn count_commit(&self) -> Result<()> {
        self.files.commit_counter.count_commit(&self.conn).inspect_err(|failure| {
            if failure.kind == ErrorKind::StorageFailed {
                self.poison(failure.clone());
            }
            if !self.conn.is_autocommit() {
                let _ = self.conn.execute_batch("ROLLBACK");
            }
        })
    }

    /// Runs one statement of the transaction. If it fails, rolls the transaction back; a fatal error poisons the
    /// thread, because after a failed sync the state of the disk is unknown.
    fn execute_or_rollback(&self, step: &str) -> Result<()> {
        // These statements run for every commit, so they are prepared once.
        let done = self.conn.prepare_cached(step).and_then(|mut step| step.execute([])).map(drop);
        done.map_err(|e| {
            let failure = Error::from_sqlite(&e);
            if is_fatal(&e) {
                self.poison(failure.clone());
            }
            if !self.conn.is_autocommit() {
                let _ = self.conn.execute_batch("ROLLBACK");
            }
            // Whether the disk has a failed commit is unknown; nothing after it is kept.
            if step == "COMMIT" && is_fatal(&e) { failure.hint(MAYBE_STORED_HINT) } else { failure }
        })
    }
}

#[cfg(test)]
mod tests;
