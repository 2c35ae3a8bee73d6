//! Stands in for the Discord part in a build without the feature `discord`.

use std::sync::Arc;

use chorus_engine::ops::Ops;
use chorus_engine::ops::discord::ConnectionState;
use tokio::time::Instant;

/// A connection that is never made.
#[derive(Debug)]
pub(crate) struct Discord;

impl Discord {
    /// Reports in the state and in the log that a configured connection is not made.
    pub(crate) fn start(ops: &Arc<Ops>) -> Self {
        if ops.config.discord.is_configured() {
            let why = "this chorusd was built without Discord support";
            tracing::warn!("{why}; ignoring the configured token");
            let hint =
                "install a build with the feature `discord`, or remove the token from the configuration".to_owned();
            ops.discord.set_state(ConnectionState::Stopped { why: why.to_owned(), hint });
        }
        Self
    }

    /// Returns at once.
    pub(crate) async fn stop(self, _deadline: Instant) {}
}
