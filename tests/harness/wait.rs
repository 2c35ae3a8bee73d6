//! Waiting for a condition, never for a time.

use std::time::{Duration, Instant};

/// Longer than anything takes here; a test that reaches it has failed.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Asks `condition` until it gives something.
///
/// # Panics
/// With `what` after `deadline`.
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

/// The one place that polls: what it waits for has no channel to wait on.
fn sleep_between_polls() {
    std::thread::sleep(Duration::from_millis(2));
}
