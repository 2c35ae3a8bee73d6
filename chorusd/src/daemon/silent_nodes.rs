//! Nodes that send no heartbeat any more: connections to them end, and their agents may be claimed.
//!
//! A heartbeat is stale after 8 s. A node that cannot be connected to either is not waited for that long: only until the bound has
//! passed after which it does nothing by itself.

use std::sync::Arc;
use std::time::Duration;

use chorus_journal::{LateNode, Ownership};
use chorus_peers::{ConnectErrorKind, PeerAddress, PeerPool};
use chorus_store::Store;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// Time between two attempts to connect to a node whose heartbeat is late.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);

/// Time that a node has to answer, at least.
const MIN_PROBE: Duration = Duration::from_millis(900);

/// Age of a failed attempt to connect from which it says nothing any more, because this process stood still.
const MAX_PROBE_AGE: Duration = Duration::from_millis(500);

/// Time in which the database has to take the verdict: later it may be wrong.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(1);

/// Time after which a node whose heartbeat is still late is looked at again.
const NEXT_LOOK: Duration = Duration::from_secs(1);

/// Watches the other nodes until `stop`.
pub(super) async fn watch(store: Arc<Store>, pool: Arc<PeerPool>, stop: CancellationToken) {
    let Some(ownership) = store.ownership.as_deref() else { return };
    tokio::select! {
        () = stop.cancelled() => {}
        () = leave_silent_nodes(ownership, &pool) => {}
        () = look_at_late_nodes(ownership, &pool) => {}
    }
}

/// Ends the connections to nodes that have fallen silent: who waits for them asks whoever has the agent then.
async fn leave_silent_nodes(ownership: &dyn Ownership, pool: &PeerPool) {
    while let Ok(nodes) = ownership.fallen_silent().await {
        for node in nodes {
            tracing::warn!(node, "another node has fallen silent");
            pool.disconnect(&node);
        }
    }
}

/// Lets others claim the agents of nodes whose heartbeat is late and that cannot be connected to. Each is looked at by itself.
async fn look_at_late_nodes(ownership: &dyn Ownership, pool: &PeerPool) {
    let (mut looks, mut known) = (FuturesUnordered::new(), Vec::new());
    loop {
        tokio::select! {
            late = ownership.late_nodes(known.clone()) => {
                let Ok(late) = late else { return };
                for late in late {
                    known.push(late.node.node.clone());
                    looks.push(async move {
                        look_at(ownership, pool, &late).await;
                        sleep(NEXT_LOOK).await;
                        late.node.node
                    });
                }
            }
            Some(looked) = looks.next() => known.retain(|node| *node != looked),
        }
    }
}

async fn look_at(ownership: &dyn Ownership, pool: &PeerPool, late: &LateNode) {
    let node = &late.node;
    let until = late.may_act_until.max(Instant::now() + MIN_PROBE);
    if answers(pool, PeerAddress { id: node.node.clone(), address: node.address.clone() }, until).await {
        return;
    }
    sleep_until(until).await;
    // What this process knows may be old: it stood still, or has no heartbeat itself.
    if until.elapsed() > MAX_PROBE_AGE || ownership.held().now_or_never().is_none() {
        return;
    }
    match timeout(VERDICT_TIMEOUT, ownership.presume_dead(node.clone())).await {
        Ok(Ok(true)) => {
            tracing::warn!(node = node.node, "a node has crashed or is cut off: others may take its agents over");
            pool.disconnect(&node.node);
        }
        Ok(Ok(false)) => {}
        Ok(Err(failure)) => tracing::info!(node = node.node, %failure, "cannot find out whether a node is dead"),
        Err(_) => tracing::info!(node = node.node, "cannot find out in time whether a node is dead"),
    }
}

/// Returns whether a node answers until then, whatever it says.
async fn answers(pool: &PeerPool, node: PeerAddress, until: Instant) -> bool {
    loop {
        let Ok(probed) = timeout_at(until, pool.probe(&node)).await else { return false };
        if !probed.is_err_and(|failure| failure.kind == ConnectErrorKind::Unreachable) {
            return true;
        }
        if Instant::now() + PROBE_INTERVAL >= until {
            return false;
        }
        sleep(PROBE_INTERVAL).await;
    }
}
