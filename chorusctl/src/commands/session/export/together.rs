//! Files that several threads put into their places.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use chorus_proto::methods::export::ExportFormat;

use super::folder::{Folder, Put};
use super::selected::Selected;
use super::text::own_bytes;
use crate::error::Failure;

/// Threads at most: more would wait for the same disk.
const THREADS: usize = 4;

/// Fewer files than this are put into place without another thread.
const FEW: usize = 8;

/// A session, and where it goes in the directory.
pub type Job = (Selected, PathBuf);

/// What became of one.
pub enum Done {
    Put(Put),
    /// Its file will not do: the daemon is to be asked for the text.
    Ask,
    Failed(Failure),
}

/// Puts `jobs` into `folder`. `told` hears what became of each, by its place among them, as they come.
///
/// # Errors
/// A thread that cannot be started; those that have begun end first.
pub fn together(
    folder: &Folder,
    jobs: &[Job],
    form: ExportFormat,
    mut told: impl FnMut(usize, Done),
) -> Result<(), Failure> {
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get().min(THREADS));
    if jobs.len() < FEW || threads < 2 || form != ExportFormat::Json {
        jobs.iter().enumerate().for_each(|(at, job)| told(at, one(folder, job, form)));
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
                    if give.send((at, one(folder, job, form))).is_err() {
                        return;
                    }
                }
            };
            let started = thread::Builder::new().name("export".into()).spawn_scoped(scope, work);
            started.map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
        }
        drop(give);
        take.into_iter().for_each(|(at, done)| told(at, done));
        Ok(())
    })
}

fn one(folder: &Folder, (session, path): &Job, form: ExportFormat) -> Done {
    match own_bytes(session, form) {
        None => Done::Ask,
        Some(bytes) => folder.put(path, &bytes).map_or_else(Done::Failed, Done::Put),
    }
}
