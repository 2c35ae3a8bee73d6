//! Waits for conditions instead of fixed times.

use std::time::{Duration, Instant};

/// Longer than any single step takes; a test that reaches it has failed.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Polls `condition` until it returns a value; panics with `what` after `deadline`.
pub fn wait_until<T>(what: &str, deadline: Duration, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + deadline;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < end, "waited {deadline:?} for {what}");
        sleep_between_polls();
    }
}

/// Sleeps between two polls. Only for conditions that have no channel to wait on.
fn sleep_between_polls() {
    std::thread::sleep(Duration::from_millis(2));
}

/// The time that a fault lasts, or between two attempts of a client. Nothing may be expected to have happened after it.
pub async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
