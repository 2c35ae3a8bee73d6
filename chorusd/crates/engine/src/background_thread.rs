//! Threads of low priority for work that nobody waits for.

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Runs what `work` returns on a thread of its own with this niceness, which threads that it starts inherit. Returns when the thread
/// has dropped everything. The future may use the runtime, but is not run by it: if the runtime ends first, its timers panic.
pub(crate) async fn run_at_low_priority<Work: Future<Output = ()>>(
    name: &'static str,
    nice: i32,
    work: impl FnOnce() -> Work + Send + 'static,
) {
    let runtime = Handle::current();
    let (ended, end) = oneshot::channel::<()>();
    let run = move || {
        // Fails where the limits of the user forbid it, which costs nothing but priority.
        let _ = rustix::process::setpriority_process(None, nice);
        let _context = runtime.enter();
        chorus_runtime::block_on(work());
        drop(ended);
    };
    if let Err(error) = std::thread::Builder::new().name(name.into()).spawn(run) {
        tracing::error!(%error, name, "cannot start a thread");
    }
    let _ = end.await;
}
