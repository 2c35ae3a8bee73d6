//! Starts tasks on tokio with boxed futures and closures.
//!
//! tokio has some twenty functions for each type of future that is spawned, twice over for its two schedulers. A boxed
//! future has one type for each result, which makes the daemon 2 MB smaller and its build shorter. `clippy.toml` refuses
//! `tokio::spawn`, `spawn_blocking` and `TaskTracker::spawn`. Use them as tokio's:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let sum = chorus_runtime::spawn(async { 1 + 2 });
//! let text = chorus_runtime::spawn_blocking(|| std::fs::read_to_string("/proc/self/comm"));
//! assert_eq!(sum.await?, 3);
//! assert!(!text.await??.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(unreachable_pub)]
#![expect(clippy::disallowed_methods, reason = "these are the functions that stand in for tokio's")]

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use chorus_base::error::{Error, Result};
use futures_util::future::{BoxFuture, FutureExt as _, Map};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::task::TaskTracker;

/// Starts a task.
///
/// # Panics
/// Outside of a tokio runtime.
#[track_caller]
pub fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    let task: BoxFuture<'static, T> = Box::pin(task);
    tokio::spawn(task)
}

/// Runs `work` on a thread where it may block.
///
/// # Panics
/// Outside of a tokio runtime.
#[track_caller]
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    tokio::task::spawn_blocking(work)
}

/// Runs `work` on a thread where it may block, and returns its result; `internal` if it panicked. The work starts at once,
/// and dropping the result does not end it.
///
/// # Panics
/// Outside of a tokio runtime.
#[track_caller]
pub fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> BlockingResult<T> {
    spawn_blocking(work).map(flatten)
}

/// The result of work on a thread where it may block.
pub type BlockingResult<T> = Map<JoinHandle<Result<T>>, fn(Result<Result<T>, JoinError>) -> Result<T>>;

fn flatten<T>(ended: Result<Result<T>, JoinError>) -> Result<T> {
    ended.map_err(|e| Error::internal(e.to_string()))?
}

/// Runs a future to its end on this thread, which may block. Needs no runtime, so the future must not use timers or sockets
/// of tokio.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Starts tasks that a tracker waits for.
pub trait SpawnTracked {
    /// Starts a task.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    fn spawn_tracked<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T>;
}

impl SpawnTracked for TaskTracker {
    #[track_caller]
    fn spawn_tracked<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        let task: BoxFuture<'static, T> = Box::pin(task);
        self.spawn(task)
    }
}
