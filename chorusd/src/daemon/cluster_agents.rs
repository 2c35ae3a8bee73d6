//! Agents that come and go while the daemon runs, because it shares them with others.

use std::sync::Arc;
use std::time::Duration;

use chorus_engine::ops::agent::AgentClaims;
use tokio_util::sync::CancellationToken;

/// Time between two looks for agents that nobody has and of which something is due.
const DUE_INTERVAL: Duration = Duration::from_secs(15);

/// Limit of the agents that are taken on at a look.
const DUE_AT_ONCE: u32 = 100;

/// Takes on agents of which something is due and those that other nodes move here, and drops those that others take over,
/// until `stop` is cancelled. Ends at once without a cluster.
pub(super) async fn run(claims: Arc<AgentClaims>, stop: CancellationToken) {
    if claims.store.ownership.is_none() {
        return;
    }
    let due = async {
        loop {
            if let Err(failure) = claims.take_on_due(DUE_AT_ONCE).await {
                tracing::warn!(%failure, "cannot look for agents that no node has");
            }
            tokio::time::sleep(DUE_INTERVAL).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = claims.watch_losses() => {}
        () = claims.watch_handovers() => {}
        () = due => {}
    }
}
