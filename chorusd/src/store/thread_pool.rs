//! Threads for what nobody waits for: they have the processors to themselves when nothing else wants them, and else
//! little of them.

use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

/// Threads, and with them jobs that run at once.
const THREAD_COUNT: usize = 2;

/// How much nicer they are than the others (nice(2)): about a seventieth of the weight.
const NICE_INCREMENT: i32 = 19;

/// Jobs that may wait.
const MAX_QUEUED_JOBS: usize = 1024;

type Job = Box<dyn FnOnce() + Send>;

/// The threads, once there is something for them to do.
#[derive(Debug, Default)]
pub struct BackgroundPool {
    queue: OnceLock<Option<SyncSender<Job>>>,
}

impl BackgroundPool {
    /// Has one of them do `work`, in the order it comes; without any, or where too much waits, it is done where blocking work is.
    pub fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        let job: Job = Box::new(work);
        let refused = match self.queue.get_or_init(start_threads) {
            Some(queue) => {
                queue.try_send(job).err().map(|(TrySendError::Full(job) | TrySendError::Disconnected(job))| job)
            }
            None => Some(job),
        };
        if let Some(job) = refused {
            tokio::task::spawn_blocking(job);
        }
    }
}

/// Lets the calling thread stand back behind the others.
pub fn lower_priority() {
    if let Err(e) = rustix::process::nice(NICE_INCREMENT) {
        tracing::debug!("a thread keeps its priority: {e}");
    }
}

fn start_threads() -> Option<SyncSender<Job>> {
    let (queue, jobs) = mpsc::sync_channel::<Job>(MAX_QUEUED_JOBS);
    let jobs = Arc::new(Mutex::new(jobs));
    let started = (0..THREAD_COUNT).filter(|_| {
        let jobs = jobs.clone();
        let spawned = thread::Builder::new().name("background".into()).spawn(move || run_jobs(&jobs));
        spawned.inspect_err(|e| tracing::warn!("there are fewer threads for the background: {e}")).is_ok()
    });
    (started.count() > 0).then_some(queue)
}

fn run_jobs(jobs: &Mutex<Receiver<Job>>) {
    lower_priority();
    loop {
        // Whoever waits for the next job holds the lock; the others wait for that.
        let Ok(job) = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv() else { return };
        // Whoever waits hears of it by the answer that never comes; the thread goes on.
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
