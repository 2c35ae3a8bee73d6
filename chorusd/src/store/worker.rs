//! Threads that own a database connection. The writer commits whatever is waiting together, so that many callers
//! share one fsync; the reader sees the last commit and waits for no writer.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use chorus_proto::ErrorKind;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::oneshot;

use super::OnFatal;
use super::copy::{self, CopyRequest, Next};
use super::recovery::{Tally, Watch};
use super::sqlite::{self, is_fatal};
use crate::failure::{Failure, IN_DOUBT, Result};

/// Jobs that may wait; more are `busy`.
const QUEUE: usize = 8192;

/// Most jobs in one commit.
const GROUP: usize = 1024;

/// How often the files of a database are compared with their paths while nothing is committed.
const LOOK: Duration = Duration::from_secs(1);

/// Looks after the files of a database that a writer has open.
#[derive(Debug, Default)]
pub struct Files {
    /// Compares them with their paths.
    pub watch: Watch,
    /// Numbers the commits, in the second place too.
    pub tally: Tally,
}

/// A job's answer, held back until the commit is known.
type Finish = Box<dyn FnOnce(Result<()>) + Send>;

struct Done {
    /// Why the job's own changes are to be undone.
    failed: Option<Failure>,
    finish: Finish,
}

/// Runs with the connection, or hears why there is none.
type Job = Box<dyn FnOnce(Result<&Connection>) -> Done + Send>;

enum Message {
    Job(Job),
    /// Undone alone only as long as it has changed nothing.
    Checked(Job),
    /// Outside of any transaction.
    Alone(Job),
    /// Copies the database in steps, between the other jobs.
    Copy(CopyRequest),
    Close(oneshot::Sender<()>),
}

/// The failure of a job that runs alone. It brings things to the disk itself, so it is judged as a commit's would be.
#[derive(Debug)]
pub struct Judged(Failure);

impl From<rusqlite::Error> for Judged {
    fn from(error: rusqlite::Error) -> Self {
        Self(Failure { fatal: is_fatal(&error), ..Failure::from_sqlite(&error) })
    }
}

impl From<Failure> for Judged {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

/// A thread with a connection.
#[derive(Debug, Clone)]
pub struct Worker {
    queue: SyncSender<Message>,
    broken: Broken,
    /// The database that it has open.
    file: &'static str,
}

/// Set when storage failed: nothing is acknowledged from then on.
type Broken = Arc<OnceLock<Failure>>;

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Job(_) => "Job",
            Self::Checked(_) => "Checked",
            Self::Alone(_) => "Alone",
            Self::Copy(_) => "Copy",
            Self::Close(_) => "Close",
        })
    }
}

impl Worker {
    /// A thread that commits jobs in groups.
    pub fn writer(name: &str, conn: Connection, on_fatal: OnFatal, files: Files) -> Result<Self> {
        let broken = Broken::default();
        Self::spawn(name, broken.clone(), move |jobs| Writer { conn, on_fatal, broken, files }.run(&jobs))
    }

    /// A thread that only reads.
    pub fn reader(name: &str, conn: Connection) -> Result<Self> {
        Self::spawn(name, Broken::default(), move |jobs| {
            while let Ok(message) = jobs.recv() {
                match message {
                    Message::Job(job) | Message::Checked(job) | Message::Alone(job) => (job(Ok(&conn)).finish)(Ok(())),
                    // Only writers copy: their own commits reach the copy.
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

    fn spawn(name: &str, broken: Broken, body: impl FnOnce(Receiver<Message>) + Send + 'static) -> Result<Self> {
        let (queue, jobs) = mpsc::sync_channel(QUEUE);
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || body(jobs))
            .map_err(|e| Failure::io("cannot start a thread", &e))?;
        let file = if name.starts_with("journal") { super::JOURNAL } else { super::CATALOG };
        Ok(Self { queue, broken, file })
    }

    /// Whether commits are still acknowledged, as far as is known without asking for one.
    ///
    /// # Errors
    /// What broke it.
    pub fn sound(&self) -> Result<()> {
        self.broken.get().cloned().map_or(Ok(()), Err)
    }

    /// Queues `job`; jobs run in the order of these calls. What it returns arrives when its commit is durable.
    pub fn submit<T, J>(&self, job: J) -> impl Future<Output = Result<T>> + Send + use<T, J>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.queue(Message::Job, job, |_: &T| ())
    }

    /// As [`Worker::submit`], for many small jobs that check before they change anything, or only change one
    /// thing: they go without a savepoint each, so one that fails after a change takes its whole group with it. `then` sees the result right after the
    /// commit, on the worker's thread and in the order of the jobs.
    pub fn submit_checked<T, J, A>(&self, job: J, then: A) -> impl Future<Output = Result<T>> + Send + use<T, J, A>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> Result<T> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
    {
        self.queue(Message::Checked, job, then)
    }

    /// As [`Worker::submit`]; `then` sees the result as that of [`Worker::submit_checked`] does.
    pub fn submit_telling<T, J, A>(&self, job: J, then: A) -> impl Future<Output = Result<T>> + Send + use<T, J, A>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> Result<T> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
    {
        self.queue(Message::Job, job, then)
    }

    /// As [`Worker::submit`], for what SQLite does only outside of a transaction.
    pub fn alone<T, J>(&self, job: J) -> impl Future<Output = Result<T>> + Send + use<T, J>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> Result<T, Judged> + Send + 'static,
    {
        self.queue(Message::Alone, |conn| job(conn).map_err(|Judged(failure)| failure), |_: &T| ())
    }

    fn queue<T, J, A>(
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
            Done {
                failed: result.as_ref().err().cloned(),
                finish: Box::new(move |commit: Result<()>| {
                    let result = result.and_then(|value| commit.map(|()| value));
                    let result = result.map_err(|failure| sqlite::named(failure, file));
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
            answer.await.unwrap_or_else(|_| Err(Failure::stopping()))
        }
    }

    /// Lets go of the pages that the connection keeps, unless too many jobs wait.
    pub async fn release_memory(&self) {
        let released = self.alone(|conn| Ok(conn.execute_batch("PRAGMA shrink_memory")?)).await;
        if let Err(failure) = released {
            tracing::debug!(%failure, "pages of a database stay in memory");
        }
    }

    /// Passes a request about a copy of the database to the thread; see [`copy::DatabaseCopy`].
    pub(super) fn copy(&self, request: CopyRequest) -> Result<()> {
        self.send(Message::Copy(request))
    }

    fn send(&self, message: Message) -> Result<()> {
        self.queue.try_send(message).map_err(|e| match e {
            TrySendError::Full(_) => Failure::busy(),
            TrySendError::Disconnected(_) => Failure::stopping(),
        })
    }

    /// Ends the thread after the jobs that wait already.
    pub async fn close(&self) {
        let (reply, done) = oneshot::channel();
        let queue = self.queue.clone();
        let sent = tokio::task::spawn_blocking(move || queue.send(Message::Close(reply)).is_ok()).await;
        if matches!(sent, Ok(true)) {
            let _ = done.await;
        }
    }
}

struct Writer {
    conn: Connection,
    on_fatal: OnFatal,
    broken: Broken,
    /// After the connection: its lock goes when SQLite's have gone.
    files: Files,
}

impl Writer {
    /// Returns the next message; `None` when nobody can send one any more. Looks at the files while there is none.
    fn next(&self, jobs: &Receiver<Message>) -> Option<Message> {
        loop {
            if self.files.watch.is_empty() || self.broken.get().is_some() {
                return jobs.recv().ok();
            }
            match jobs.recv_timeout(LOOK) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    if self.looked(self.files.watch.before()).is_err() {
                        self.tell_if_broken();
                    }
                }
            }
        }
    }

    /// Passes on the result of a look at the files. Once one is gone, nothing more is acknowledged, and SQLite leaves out the
    /// checkpoint of its closing: it would write into files of somebody else.
    fn looked(&self, result: Result<()>) -> Result<()> {
        result.inspect_err(|failure| {
            self.breaks(failure.clone());
            let _ = self.conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        })
    }

    /// Looks at the files once something is on the disk, before it is acknowledged.
    fn committed(&self) -> Result<()> {
        // The disk has it, if only in a file that is gone from its place.
        self.looked(self.files.watch.after()).map_err(|failure| failure.hint(IN_DOUBT))?;
        self.files.tally.committed();
        Ok(())
    }

    fn run(self, jobs: &Receiver<Message>) {
        let closing = self.serve(jobs);
        if self.broken.get().is_none() {
            self.files.tally.close();
        }
        drop(self);
        if let Some(done) = closing {
            let _ = done.send(());
        }
    }

    /// Carries out what comes until the writer is to close, or nobody can send any more.
    fn serve(&self, jobs: &Receiver<Message>) -> Option<oneshot::Sender<()>> {
        loop {
            let first = self.next(jobs)?;
            let closing = match self.take(first, jobs) {
                Next::More => None,
                Next::Close(done) => Some(done),
                Next::Copy(request) => copy::make(&self.conn, request, |wait| {
                    let message = if wait { self.next(jobs) } else { jobs.try_recv().ok() };
                    message.map(|message| self.take(message, jobs))
                }),
            };
            if closing.is_some() {
                return closing;
            }
        }
    }

    /// Carries out `first` and what waits behind it, jobs together in one commit.
    fn take(&self, first: Message, jobs: &Receiver<Message>) -> Next {
        let mut group = Vec::new();
        let mut next = Some(first);
        let (mut after, mut alone) = (Next::More, None);
        while let Some(message) = next.take() {
            match message {
                Message::Job(job) => group.push((job, false)),
                Message::Checked(job) => group.push((job, true)),
                Message::Alone(job) => {
                    alone = Some(job);
                    break;
                }
                Message::Copy(request) => {
                    after = Next::Copy(request);
                    break;
                }
                Message::Close(done) => {
                    after = Next::Close(done);
                    break;
                }
            }
            if group.len() < GROUP {
                next = jobs.try_recv().ok();
            }
        }
        if !group.is_empty() {
            self.commit(&mut group);
        }
        if let Some(job) = alone {
            self.alone(job);
        }
        after
    }

    fn alone(&self, job: Job) {
        let before = match self.broken.get() {
            Some(failure) => Err(failure.clone()),
            None => self.looked(self.files.watch.before()),
        };
        let Done { failed, finish } = job(before.map(|()| &self.conn));
        if let Some(failure) = failed.filter(|failure| failure.fatal) {
            self.breaks(failure);
        }
        finish(match self.broken.get() {
            Some(failure) => Err(failure.clone()),
            None => self.committed(),
        });
        self.tell_if_broken();
    }

    /// What broke it first is what is told.
    fn breaks(&self, failure: Failure) {
        let _ = self.broken.set(failure);
    }

    fn tell_if_broken(&self) {
        if let Some(failure) = self.broken.get() {
            (self.on_fatal)(failure.clone());
        }
    }

    fn commit(&self, group: &mut Vec<(Job, bool)>) {
        let mut finished = Vec::with_capacity(group.len());
        let alone = group.len() == 1;
        let mut jobs = group.drain(..);
        let outcome = match self.transaction(alone, &mut jobs, &mut finished) {
            Ok(()) => self.committed(),
            Err(failure) => {
                // A commit that found no room, or was undone, may have written to the log all the same.
                if self.broken.get().is_none() {
                    let _ = self.looked(self.files.watch.after());
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
        self.tell_if_broken();
    }

    fn transaction(
        &self,
        alone: bool,
        jobs: &mut impl Iterator<Item = (Job, bool)>,
        finished: &mut Vec<Done>,
    ) -> Result<()> {
        if let Some(failure) = self.broken.get() {
            return Err(failure.clone());
        }
        self.looked(self.files.watch.before())?;
        self.execute("BEGIN IMMEDIATE")?;
        self.files.tally.begin();
        let before = self.conn.total_changes();
        for (job, checked) in jobs {
            let savepoint = !alone && !checked;
            if savepoint {
                self.execute("SAVEPOINT job")?;
            }
            let changes = self.conn.total_changes();
            let done = job(Ok(&self.conn));
            let failed = done.failed.clone();
            finished.push(done);
            match failed {
                // A sync failed elsewhere: nothing is acknowledged from here on.
                Some(failure) if failure.fatal => {
                    self.breaks(failure.clone());
                    self.execute("ROLLBACK")?;
                    return Err(failure);
                }
                // SQLite undid the whole transaction by itself, as it does when the disk is full.
                Some(failure) if self.conn.is_autocommit() => {
                    if failure.kind == ErrorKind::StorageFailed {
                        self.breaks(failure.clone());
                    }
                    return Err(failure);
                }
                Some(_) if alone => return self.execute("ROLLBACK"),
                Some(_) if savepoint => {
                    self.execute("ROLLBACK TO job")?;
                    self.execute("RELEASE job")?;
                }
                Some(_) if self.conn.total_changes() == changes => {}
                Some(failure) => {
                    self.execute("ROLLBACK")?;
                    return Err(failure);
                }
                None if savepoint => self.execute("RELEASE job")?,
                None => {}
            }
        }
        if self.conn.total_changes() != before {
            self.count()?;
        }
        self.execute("COMMIT")
    }

    /// Counts the transaction; where that fails, it is undone.
    fn count(&self) -> Result<()> {
        self.files.tally.count(&self.conn).inspect_err(|failure| {
            if failure.kind == ErrorKind::StorageFailed {
                self.breaks(failure.clone());
            }
            if !self.conn.is_autocommit() {
                let _ = self.conn.execute_batch("ROLLBACK");
            }
        })
    }

    /// Runs a step of the transaction; when it fails, the transaction is undone and the failure judged: after a failed
    /// sync nothing is known of what is on the disk, so it is the end of trust.
    fn execute(&self, step: &str) -> Result<()> {
        // Prepared once: these come with every commit.
        let done = self.conn.prepare_cached(step).and_then(|mut step| step.execute([])).map(drop);
        done.map_err(|e| {
            let failure = Failure::from_sqlite(&e);
            if is_fatal(&e) {
                self.breaks(failure.clone());
            }
            if !self.conn.is_autocommit() {
                let _ = self.conn.execute_batch("ROLLBACK");
            }
            // Nobody knows what the disk has of a commit that failed; what comes after it is certainly not kept.
            if step == "COMMIT" && is_fatal(&e) { failure.hint(IN_DOUBT) } else { failure }
        })
    }
}

#[cfg(test)]
mod tests;
