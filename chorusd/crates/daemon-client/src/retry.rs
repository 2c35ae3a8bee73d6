//! The waits before the daemon is tried again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(250);
const LAST: Duration = Duration::from_secs(5);

/// The wait before the next attempt. It doubles up to a limit.
#[derive(Debug)]
pub(crate) struct Retry(Duration);

impl Retry {
    pub(crate) fn new() -> Self {
        Self(FIRST)
    }

    /// Notes that an attempt succeeded.
    pub(crate) fn reset(&mut self) {
        self.0 = FIRST;
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(LAST);
    }
}
