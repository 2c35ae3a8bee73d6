//! Thread pool for work that nobody waits for. Its threads run at the lowest priority, so that they use the processors
//! fully only when nothing else needs them.

use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, OnceLock};
use std::thread;

use chorus_base::sync::Mutex;

/// Number of threads, and so of jobs that run concurrently.
const THREAD_COUNT: usize = 2;

/// Increment of the threads' nice value (nice(2)): about a seventieth of the weight of the other threads.
const NICE_INCREMENT: i32 = 19;

/// Limit of queued jobs.
const MAX_QUEUED_JOBS: usize = 1024;

type Job = Box<dyn FnOnce() + Send>;

/// The pool; its threads start with the first job.
#[derive(Debug, Default)]
pub struct BackgroundPool {
    queue: OnceLock<Option<SyncSender<Job>>>,
}

impl BackgroundPool {
    /// Queues `work`, which runs in the order of these calls. If the queue is full or no thread could be started, runs
    /// it on tokio's blocking pool.
    pub fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        let job: Job = Box::new(work);
        let refused = match self.queue.get_or_init(start_threads) {
            Some(queue) => {
                queue.try_send(job).err().map(|(TrySendError::Full(job) | TrySendError::Disconnected(job))| job)
            }
            None => Some(job),
        };
        if let Some(job) = refused {
            chorus_runtime::spawn_blocking(job);
        }
    }
}

/// Lowers the priority of the calling thread.
pub(crate) fn lower_priority() {
    if let Err(e) = rustix::process::nice(NICE_INCREMENT) {
        tracing::debug!("cannot change the priority of a thread: {e}");
    }
}

fn start_threads() -> Option<SyncSender<Job>> {
    let (queue, jobs) = mpsc::sync_channel::<Job>(MAX_QUEUED_JOBS);
    let jobs = Arc::new(Mutex::new(jobs));
    let started = (0..THREAD_COUNT).filter(|_| {
        let jobs = jobs.clone();
        let spawned = thread::Builder::new().name("background".into()).spawn(move || run_jobs(&jobs));
        spawned.inspect_err(|e| tracing::warn!("cannot start all background threads: {e}")).is_ok()
    });
    (started.count() > 0).then_some(queue)
}

fn run_jobs(jobs: &Mutex<Receiver<Job>>) {
    lower_priority();
    loop {
        // The thread that waits for the next job holds the lock; the other threads wait for the lock.
        let Ok(job) = jobs.lock().recv() else { return };
        // The caller notices a panic by its dropped reply channel; the thread continues.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn it_is_done_by_threads_that_stand_back_and_outlive_a_panic() {
        let background = BackgroundPool::default();
        let own = rustix::process::getpriority_process(None).unwrap();
        for _ in 0..=THREAD_COUNT {
            background.spawn(|| panic!("a job of the test"));
        }
        let (reply, answer) = oneshot::channel();
        background.spawn(move || _ = reply.send(rustix::process::getpriority_process(None).unwrap()));
        assert_eq!(answer.await, Ok((own + NICE_INCREMENT).min(19)));
    }
}
