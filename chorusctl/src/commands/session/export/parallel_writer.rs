//! Writes exported files with several threads.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use chorus_proto::methods::export::ExportFormat;

use super::atomic_file_writer::{OutputDir, WriteOutcome};
use super::selected_session::ExportSession;
use super::session_text::{TextForm, read_session_file};
use crate::error::Error;

/// Maximum number of threads; more would only wait for the same disk.
const MAX_THREADS: usize = 4;

/// With fewer files no threads are started.
const MIN_PARALLEL_JOBS: usize = 8;

/// A session and the path of its file in the directory.
pub(super) type ExportJob = (ExportSession, PathBuf);

/// Outcome of one job.
pub(super) enum JobOutcome {
    Written(WriteOutcome),
    /// The session file cannot be used: fetch the text from the daemon.
    FetchNeeded,
    Failed(Error),
}

/// Writes all `jobs` into `folder`. Calls `told` with the index and outcome of each job, in order of completion.
///
/// # Errors
/// A thread cannot be started. Threads that were started finish first.
pub(super) fn write_parallel(
    folder: &OutputDir,
    jobs: &[ExportJob],
    form: TextForm,
    mut told: impl FnMut(usize, JobOutcome),
) -> Result<(), Error> {
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS));
    if jobs.len() < MIN_PARALLEL_JOBS || threads < 2 || form.form != ExportFormat::Json {
        jobs.iter().enumerate().for_each(|(at, job)| told(at, write_one(folder, job, form)));
        return Ok(());
    }
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (give, take) = sync_channel(threads);
        for _ in 0..threads {
            let (give, next) = (give.clone(), &next);
            let work = move || {
                while let Some((at, job)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, jobs.get(at)?)))
                {
                    if give.send((at, write_one(folder, job, form))).is_err() {
                        return;
                    }
                }
            };
            let started = thread::Builder::new().name("export".into()).spawn_scoped(scope, work);
            started.map_err(|error| Error::failed(format!("failed to start a thread: {error}")))?;
        }
        drop(give);
        take.into_iter().for_each(|(at, done)| told(at, done));
        Ok(())
    })
}

fn write_one(folder: &OutputDir, (session, path): &ExportJob, form: TextForm) -> JobOutcome {
    match read_session_file(session, form) {
        None => JobOutcome::FetchNeeded,
        Some(bytes) => folder.write_file(path, &bytes).map_or_else(JobOutcome::Failed, JobOutcome::Written),
    }
}
