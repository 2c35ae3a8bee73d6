//! Stands for the traces in a program that was built without them.

use std::convert::Infallible;
use std::sync::Arc;

use chorus_engine::ops::Ops;
use tokio::time::Instant;

/// Traces that cannot be sent.
pub(crate) struct Traces(Infallible);

/// Logs that no traces are sent, if the configuration has a collector.
pub(crate) fn start(ops: &Arc<Ops>) -> Option<Traces> {
    if ops.config.traces.endpoint.is_some() {
        tracing::warn!("config.toml has a table [traces], but this chorusd was built without traces; none are sent");
    }
    None
}

impl Traces {
    #[expect(clippy::unused_async, reason = "as the other one")]
    pub(crate) async fn stop(self, _until: Instant) {
        match self.0 {}
    }
}
