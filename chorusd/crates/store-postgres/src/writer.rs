//! The task that writes: it commits the waiting jobs together, over one connection, so that all of a node have one order.
//!
//! If the connection ends during a commit, the next connection finds out whether that transaction was committed, by its
//! number in the row of `writers`. What was not committed is sent once more.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex;
use chorus_proto::ErrorKind;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Client;

use crate::OnFatal;
use crate::batch::{self, BatchId, Job, JobRows};
use crate::connection::DatabaseUrl;
use crate::errors::{
    TransactionError, cannot_follow, is_other_writer, is_overtaken, is_transient, refused, unavailable, unknown_outcome,
};
use crate::node::{Node, heartbeat_is_late, replaced};
use crate::ownership::{Grant, Grants};
use crate::plain_append::{self, PlainAppend, plain_appends};
use crate::statement::{Call, Prepared, call, run_alone};

/// Limit of jobs that wait; further ones fail with `busy`.
const MAX_QUEUED_JOBS: usize = 8192;

/// Limit of jobs in a transaction.
pub(crate) const MAX_JOBS_PER_COMMIT: usize = 256;

/// Time between two attempts to connect.
pub(crate) const RECONNECT_DELAY: Duration = Duration::from_millis(200);

/// Time for which jobs that were not sent wait for the database to come back.
const MAX_WAIT_FOR_DATABASE: Duration = Duration::from_secs(10);

/// How often a transaction is tried that the database refused because of another one.
const MAX_TRIES: u32 = 5;

/// Runs once the connection was lost and all answers of the last transaction are known.
pub(crate) type AfterReconnect = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// The queue of the writer. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    jobs: mpsc::Sender<Job>,
    node: Arc<Node>,
    health: Arc<Mutex<Option<Error>>>,
}

impl Writer {
    /// Connects and starts the task. It ends after the jobs that wait when the writer and its clones are dropped.
    pub(crate) async fn start(
        url: DatabaseUrl,
        node: Arc<Node>,
        grants: Arc<Grants>,
        on_fatal: OnFatal,
        after_reconnect: AfterReconnect,
    ) -> Result<Self> {
        let (jobs, queue) = mpsc::channel(MAX_QUEUED_JOBS);
        let health = Arc::new(Mutex::new(None));
        let mut task = WriterTask {
            url,
            node: node.clone(),
            grants,
            on_fatal,
            health: health.clone(),
            after_reconnect,
            session: None,
            queue,
            alone: VecDeque::new(),
            acknowledged: None,
        };
        task.session = Some(task.connect().await.map_err(ConnectError::into_error)?);
        chorus_runtime::spawn(task.run());
        Ok(Self { jobs, node, health })
    }

    /// Queues `calls`, which need `grant`, and returns what `decode` makes of their rows after the commit. `then` runs
    /// after the caller has its result; it gets the same rows. `confirm` is read instead if the rows were lost.
    pub(crate) fn submit<T, D, P>(
        &self,
        grant: Result<Option<Grant>>,
        calls: Vec<Call>,
        confirm: Option<Call>,
        decode: D,
        then: P,
    ) -> BoxFuture<'static, Result<T>>
    where
        T: Send + 'static,
        D: FnOnce(&JobRows) -> Result<T> + Send + Sync + 'static,
        P: FnOnce(&JobRows) + Send + Sync + 'static,
    {
        self.submit_work(grant, Work { calls, confirm, plain: None }, decode, then)
    }

    /// Does the same for work that may be a plain append.
    pub(crate) fn submit_work<T, D, P>(
        &self,
        grant: Result<Option<Grant>>,
        work: Work,
        decode: D,
        then: P,
    ) -> BoxFuture<'static, Result<T>>
    where
        T: Send + 'static,
        D: FnOnce(&JobRows) -> Result<T> + Send + Sync + 'static,
        P: FnOnce(&JobRows) + Send + Sync + 'static,
    {
        let Work { calls, confirm, plain } = work;
        let (sender, receiver) = oneshot::channel();
        let finish = move |rows: Result<JobRows>, confirmed: bool| {
            let result = rows.and_then(|rows| Ok((decode(&rows)?, rows)));
            let _ = match result {
                Ok((value, rows)) => {
                    let sent = sender.send(Ok(value));
                    if !confirmed {
                        then(&rows);
                    }
                    sent
                }
                Err(failure) => sender.send(Err(failure)),
            };
        };
        let queued = self.check(grant).and_then(|grant| {
            let job = Job { grant, calls, plain, confirm, finish: Box::new(finish) };
            self.jobs.try_send(job).map_err(|refused| match refused {
                TrySendError::Full(_) => {
                    Error::new(ErrorKind::Busy, "too many writes wait for PostgreSQL").hint("try again in a moment")
                }
                TrySendError::Closed(_) => self.health.lock().clone().unwrap_or_else(unknown_outcome),
            })
        });
        Box::pin(async move {
            queued?;
            receiver.await.unwrap_or_else(|_| Err(unknown_outcome()))
        })
    }

    fn check(&self, grant: Result<Option<Grant>>) -> Result<Option<Grant>> {
        self.ensure_healthy()?;
        if !self.node.may_begin() {
            return Err(heartbeat_is_late());
        }
        grant
    }

    /// Returns the error after which nothing is acknowledged any more, if there was one.
    pub(crate) fn ensure_healthy(&self) -> Result<()> {
        self.health.lock().clone().map_or(Ok(()), Err)
    }
}

/// The statements of a job.
pub(crate) struct Work {
    pub(crate) calls: Vec<Call>,
    /// Read in place of the calls if their rows were lost.
    pub(crate) confirm: Option<Call>,
    /// The append that the calls are, if it may be committed together with others.
    pub(crate) plain: Option<PlainAppend>,
}

/// A connection as which the row of `writers` knows this process.
struct Session {
    client: Client,
    prepared: Prepared,
    connection: i64,
    /// Number of the last transaction that was committed.
    batch: i64,
}

enum ConnectError {
    /// Worth another attempt.
    Unreachable(Error),
    Fatal(Error),
}

impl ConnectError {
    fn into_error(self) -> Error {
        match self {
            Self::Unreachable(failure) | Self::Fatal(failure) => failure,
        }
    }
}

struct WriterTask {
    url: DatabaseUrl,
    node: Arc<Node>,
    grants: Arc<Grants>,
    on_fatal: OnFatal,
    health: Arc<Mutex<Option<Error>>>,
    after_reconnect: AfterReconnect,
    session: Option<Session>,
    queue: mpsc::Receiver<Job>,
    /// Jobs of a transaction that was refused. Each is committed alone, before those in the queue, so that only those fail that have to.
    alone: VecDeque<Job>,
    /// Number of the last transaction whose outcome was answered.
    acknowledged: Option<i64>,
}

impl WriterTask {
    async fn run(mut self) {
        while let Some(jobs) = self.next_jobs().await {
            if let Err(failure) = self.run_batch(jobs).await {
                self.queue.close();
                self.alone.drain(..).for_each(|job| job.fail(failure.clone()));
                while let Some(job) = self.queue.recv().await {
                    job.fail(failure.clone());
                }
            }
        }
    }

    /// Waits for jobs, and returns those of the next transaction. `None` once there can be no more.
    async fn next_jobs(&mut self) -> Option<Vec<Job>> {
        if let Some(job) = self.alone.pop_front() {
            return Some(vec![job]);
        }
        let mut jobs = vec![self.queue.recv().await?];
        while jobs.len() < MAX_JOBS_PER_COMMIT
            && let Ok(job) = self.queue.try_recv()
        {
            jobs.push(job);
        }
        Some(jobs)
    }

    /// Connects, and makes this connection the only one that writes for the node. Waits for a transaction of an earlier
    /// connection that still runs.
    async fn connect(&self) -> Result<Session, ConnectError> {
        let client = self.url.connect().await.map_err(ConnectError::Unreachable)?;
        let sql = "UPDATE writers SET connection = connection + 1 WHERE node = $1 AND boot = $2
             RETURNING connection, batch";
        let route = self.url.route();
        let rows = run_alone(&client, route, call!(sql, self.node.id.clone(), self.node.boot)).await;
        let rows = rows.map_err(|e| ConnectError::Unreachable(unavailable(e)))?;
        let Some(row) = rows.first() else { return Err(ConnectError::Fatal(self.node.why_refused(&client).await)) };
        let (connection, batch) = (row.get(0), row.get(1));
        let session = Session { client, prepared: Prepared::new(route), connection, batch };
        if self.acknowledged.is_some_and(|acknowledged| session.batch < acknowledged) {
            return Err(ConnectError::Fatal(lost_commits()));
        }
        Ok(session)
    }

    /// Connects however long it takes. Jobs that were not sent fail once they have waited long enough: those of a refused transaction, and
    /// `waiting` or without these the queue.
    async fn reconnect(&mut self, mut waiting: Option<&mut Vec<Job>>) -> Result<()> {
        let begun = tokio::time::Instant::now();
        loop {
            match self.connect().await {
                Ok(session) => {
                    self.session = Some(session);
                    return Ok(());
                }
                Err(ConnectError::Fatal(failure)) => return Err(failure),
                Err(ConnectError::Unreachable(failure)) => {
                    if begun.elapsed() >= MAX_WAIT_FOR_DATABASE {
                        self.alone.drain(..).for_each(|job| job.fail(failure.clone()));
                        if let Some(jobs) = waiting.take() {
                            jobs.drain(..).for_each(|job| job.fail(failure.clone()));
                            return Ok(());
                        }
                        // Of what was sent the outcome is not known, and it waits; what came behind it was not.
                        while let Ok(job) = self.queue.try_recv() {
                            job.fail(failure.clone());
                        }
                    }
                    tokio::time::sleep(RECONNECT_DELAY).await;
                }
            }
        }
    }

    /// Commits jobs and answers them.
    ///
    /// # Errors
    /// Fails if this process may write nothing more; the jobs are answered.
    async fn run_batch(&mut self, mut jobs: Vec<Job>) -> Result<()> {
        let mut tries = 0;
        while !jobs.is_empty() {
            if self.session.is_none() {
                if let Err(failure) = self.reconnect(Some(&mut jobs)).await {
                    return Err(self.give_up(failure, jobs));
                }
                continue;
            }
            match self.commit(&jobs).await {
                Ok(rows) => {
                    jobs.drain(..).zip(rows).for_each(|(job, rows)| (job.finish)(Ok(rows), false));
                }
                Err(TransactionError::Disconnected(cause)) => {
                    tracing::warn!("the connection to PostgreSQL ended during a commit: {cause}");
                    match self.was_committed().await {
                        Ok(true) => self.confirm(std::mem::take(&mut jobs)).await,
                        Ok(false) => {}
                        Err(failure) => return Err(self.give_up(failure, jobs)),
                    }
                }
                Err(TransactionError::Refused(failure)) => {
                    if is_other_writer(&failure) {
                        let why = match &self.session {
                            Some(session) => self.node.why_refused(&session.client).await,
                            None => replaced(&self.node.id),
                        };
                        return Err(self.give_up(why, jobs));
                    }
                    tries += 1;
                    if is_transient(&failure) && tries < MAX_TRIES {
                        continue;
                    }
                    // An append that is not plain after all is run as any other.
                    if cannot_follow(&failure) && jobs.iter().any(|job| job.plain.is_some()) {
                        jobs.iter_mut().for_each(|job| job.plain = None);
                        continue;
                    }
                    self.refuse(&mut jobs, &failure);
                }
            }
        }
        Ok(())
    }

    /// Lets nothing more be written, reports why, and answers `jobs`.
    fn give_up(&self, failure: Error, jobs: Vec<Job>) -> Error {
        *self.health.lock() = Some(failure.clone());
        (self.on_fatal)(failure.clone());
        jobs.into_iter().for_each(|job| job.fail(failure.clone()));
        failure
    }

    /// Answers the only job with `failure`; several are committed once more, each alone.
    fn refuse(&mut self, jobs: &mut Vec<Job>, failure: &tokio_postgres::Error) {
        if jobs.len() > 1 {
            return self.alone.extend(jobs.drain(..));
        }
        for job in jobs.drain(..) {
            if is_overtaken(failure)
                && let Some(grant) = job.grant
            {
                self.grants.remove_lost(grant);
            }
            job.fail(refused(failure));
        }
    }

    async fn commit(&mut self, jobs: &[Job]) -> Result<Vec<JobRows>, TransactionError> {
        let Some(Session { client, prepared, connection, batch }) = &mut self.session else { return Ok(Vec::new()) };
        let id = BatchId { node: &self.node.id, boot: self.node.boot, connection: *connection, batch: *batch + 1 };
        let rows = match plain_appends(jobs) {
            Some(appends) => plain_append::commit(client, prepared, id, &appends).await?,
            None => batch::commit(client, prepared, id, jobs).await?,
        };
        *batch += 1;
        self.acknowledged = Some(*batch);
        Ok(rows)
    }

    /// Connects again, and returns whether the transaction that was sent last was committed.
    async fn was_committed(&mut self) -> Result<bool> {
        let sent = self.session.take().map_or(0, |session| session.batch + 1);
        self.reconnect(None).await?;
        Ok(self.session.as_ref().is_some_and(|session| session.batch >= sent))
    }

    /// Answers jobs that were committed while their rows were lost.
    async fn confirm(&mut self, jobs: Vec<Job>) {
        for job in jobs {
            let Some(call) = &job.confirm else {
                (job.finish)(Ok(Vec::new()), true);
                continue;
            };
            let rows = loop {
                if self.session.is_none()
                    && let Err(failure) = self.reconnect(None).await
                {
                    break Err(failure);
                }
                let Some(Session { client, prepared, .. }) = &mut self.session else { continue };
                match prepared.send_all(client, std::iter::once(call)).await.map_err(TransactionError::new) {
                    Ok(rows) => break Ok(rows),
                    Err(TransactionError::Refused(failure)) => break Err(refused(&failure)),
                    Err(TransactionError::Disconnected(_)) => self.session = None,
                }
            };
            (job.finish)(rows, true);
        }
        self.acknowledged = self.session.as_ref().map(|session| session.batch);
        (self.after_reconnect)().await;
    }
}

/// The error when the database is at an earlier state than one that was acknowledged.
fn lost_commits() -> Error {
    Error::new(ErrorKind::StorageFailed, "PostgreSQL has lost transactions that it had committed")
        .hint("was a standby promoted that had not received them? Set synchronous_standby_names, see docs/SCALING.md")
}
