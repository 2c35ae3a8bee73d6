//! A timer for a thread outside of the runtime.

use std::time::Duration;

/// A timer of the runtime that a thread outside of it can wait for; it also fires when the runtime ends.
pub(crate) struct Timer(tokio::task::JoinHandle<()>);

impl Timer {
    pub(crate) fn start(duration: Duration) -> Self {
        Self(chorus_runtime::spawn(async move { tokio::time::sleep(duration).await }))
    }

    pub(crate) async fn fired(mut self) {
        let _ = (&mut self.0).await;
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}
