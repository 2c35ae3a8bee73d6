//! Threads for what nobody waits for: they have the processors to themselves when nothing else wants them, and else
//! little of them.

use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use tokio::sync::{Semaphore, oneshot};

use crate::failure::{Failure, Result};

/// Threads, and with them jobs that run at once.
const THREADS: usize = 2;

/// How much nicer they are than the others (nice(2)): about a seventieth of the weight.
const NICE: i32 = 19;

type Job = Box<dyn FnOnce() + Send>;

/// The threads, once there is something for them to do.
#[derive(Debug)]
pub struct Background {
    queue: OnceLock<Option<SyncSender<Job>>>,
    turns: Semaphore,
}

impl Default for Background {
    fn default() -> Self {
        Self { queue: OnceLock::new(), turns: Semaphore::new(THREADS * 2) }
    }
}

impl Background {
    /// Does `work` on one of them; without any, where blocking work is done.
    ///
    /// # Errors
    /// What `work` says.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move || _ = reply.send(work()));
        // A few more than there are threads, so that none has to wait for the next job to be thought of.
        let turn = self.turns.acquire().await;
        let refused = match self.queue.get_or_init(start) {
            Some(queue) => {
                queue.try_send(job).err().map(|(TrySendError::Full(job) | TrySendError::Disconnected(job))| job)
            }
            None => Some(job),
        };
        if let Some(job) = refused {
            tokio::task::spawn_blocking(job);
        }
        let answer = answer.await;
        drop(turn);
        answer.unwrap_or_else(|_| Err(Failure::internal("work in the background came to nothing")))
    }
}

/// Lets the calling thread stand back behind the others.
pub fn stand_back() {
    if let Err(e) = rustix::process::nice(NICE) {
        tracing::debug!("a thread keeps its priority: {e}");
    }
}

fn start() -> Option<SyncSender<Job>> {
    let (queue, jobs) = mpsc::sync_channel::<Job>(THREADS * 2);
    let jobs = Arc::new(Mutex::new(jobs));
    let started = (0..THREADS).filter(|_| {
        let jobs = jobs.clone();
        let spawned = thread::Builder::new().name("background".into()).spawn(move || work(&jobs));
        spawned.inspect_err(|e| tracing::warn!("there are fewer threads for the background: {e}")).is_ok()
    });
    (started.count() > 0).then_some(queue)
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    stand_back();
    loop {
        // Whoever waits for the next job holds the lock; the others wait for that.
        let Ok(job) = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv() else { return };
        // Whoever waits hears of it by the answer that never comes; the thread goes on.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_done_by_threads_that_stand_back() {
        let background = Background::default();
        let nice = background.run(|| Ok(rustix::process::getpriority_process(None).unwrap())).await;
        assert_eq!(nice, Ok((rustix::process::getpriority_process(None).unwrap() + NICE).min(19)));
        let failed: Result<()> = background.run(|| Err(Failure::internal("no"))).await;
        assert_eq!(failed, Err(Failure::internal("no")));
    }
}
