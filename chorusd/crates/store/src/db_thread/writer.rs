//! The thread that writes to a database: it commits the waiting jobs together.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use chorus_base::error::{Error, MAYBE_STORED_HINT, Result};
use chorus_proto::ErrorKind;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::oneshot;

use super::super::OnFatal;
use super::super::snapshot::{self, AfterBatch};
use super::super::sqlite::{self, is_fatal};
use super::{
    CompletedJob, DEFERRED_COMMIT_DELAY, FILE_CHECK_INTERVAL, FileGuards, Job, MAX_JOBS_PER_COMMIT, Message, Poison,
};

pub(super) struct WriterThread {
    pub(super) conn: Connection,
    pub(super) on_fatal: OnFatal,
    pub(super) broken: Poison,
    /// Declared after the connection so that it is dropped later: its lock must outlive SQLite's locks.
    pub(super) files: FileGuards,
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

    pub(super) fn run(self, jobs: &Receiver<Message>) {
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
                    after = AfterBatch::Copy(*request);
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
            let failure = sqlite::to_error(&e);
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
