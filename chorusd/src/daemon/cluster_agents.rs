//! Agents that come and go while the daemon runs, because it shares them with others.

use std::sync::Arc;
use std::time::Duration;

use chorus_engine::ops::agent::AgentClaims;
use tokio_util::sync::CancellationToken;

/// Time between two looks for agents that nobody has and of which something is due.
const DUE_INTERVAL: Duration = Duration::from_secs(15);

/// Limit of the agents that are taken on at a look.
const DUE_AT_ONCE: u32 = 100;

/// Time between two looks for files of agents that somebody has edited.
const EDITS_INTERVAL: Duration = Duration::from_secs(10);

/// Limit of the agents whose files are looked at each time: with more, each has its turn less often.
const LOOKED_AT_ONCE: usize = 200;

/// Takes on agents of which something is due and those that other nodes move here, drops those that others take over, and
/// stores the files of those it has, until `stop` is cancelled. Ends at once without a cluster.
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
    let edits = async {
        // What was edited while this daemon did not run.
        claims.store_file_edits(None, usize::MAX).await;
        let mut last = None;
        loop {
            tokio::time::sleep(EDITS_INTERVAL).await;
            last = claims.store_file_edits(last, LOOKED_AT_ONCE).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = watch_hold(&claims) => {}
        () = claims.watch_losses() => {}
        () = claims.watch_handovers() => {}
        () = due => {}
        () = edits => {}
    }
}

/// Ends all turns and tools whenever the heartbeat of this node is late: others may take its agents over soon.
async fn watch_hold(claims: &AgentClaims) {
    let Some(ownership) = &claims.store.ownership else { return };
    loop {
        ownership.hold_ended().await;
        tracing::warn!("the database has had no heartbeat for six seconds: ending all turns and tasks");
        claims.moves.tasks.stop_all();
        let registry = claims.registry.clone();
        // Each answer may wait for the database.
        chorus_runtime::spawn(async move { registry.end_turns_without_store().await });
        ownership.held().await;
        // What has ended could not be recorded until now.
        if let Err(failure) = claims.moves.close_unrecorded().await {
            tracing::warn!(%failure, "cannot record what has ended without the database");
        }
    }
}
