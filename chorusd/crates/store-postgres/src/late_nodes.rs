//! Other nodes whose heartbeat is late, before it is stale.
//!
//! Each heartbeat of this node brings the age of the others'. So each node knows, without a further statement, when one misses its own.

use std::time::Duration;

use chorus_base::error::Result;
use chorus_journal::{LateNode, Owner};
use tokio::time::Instant;

use crate::PostgresJournal;
use crate::errors::read_failed;
use crate::node::{HEARTBEAT_INTERVAL, HOLD_LIMIT, Node, STALE_AFTER};
use crate::statement::{call, run_alone};

/// Age from which a heartbeat is late: two are missing.
const LATE_AFTER: Duration = HEARTBEAT_INTERVAL.saturating_mul(2).saturating_add(Duration::from_secs(1));

/// Another node, and the latest moment at which it may have sent its last heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherNode {
    node: Owner,
    heartbeat: Instant,
}

/// Reads the columns of a heartbeat: names, addresses, ages in seconds.
pub(crate) fn read_others(ids: Vec<String>, addresses: Vec<String>, ages: Vec<f64>) -> Vec<OtherNode> {
    let now = Instant::now();
    let others = ids.into_iter().zip(addresses).zip(ages).map(|((node, address), age)| {
        let age = Duration::try_from_secs_f64(age).unwrap_or_default();
        OtherNode { node: Owner { node, address }, heartbeat: now.checked_sub(age).unwrap_or(now) }
    });
    others.collect()
}

impl Node {
    /// Waits until the heartbeats of other nodes than those in `known` are late, and returns those nodes.
    pub(crate) async fn late_nodes(&self, known: &[String]) -> Vec<LateNode> {
        let mut others = self.others.subscribe();
        loop {
            let mut unknown = others.borrow_and_update().clone();
            unknown.retain(|other| !known.contains(&other.node.node));
            let late_at = |other: &OtherNode| other.heartbeat + LATE_AFTER;
            let next = unknown.iter().map(late_at).min();
            let wait = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // An error is impossible: this node has the sender.
                _ = others.changed() => continue,
                () = wait => {}
            }
            if self.heartbeat_age() < HEARTBEAT_INTERVAL * 2 {
                let now = Instant::now();
                let late = unknown.into_iter().filter(|other| late_at(other) <= now);
                return late
                    .map(|other| LateNode { may_act_until: other.heartbeat + HOLD_LIMIT, node: other.node })
                    .collect();
            }
            // Without heartbeats of its own it knows nothing of the others.
            let _ = others.changed().await;
        }
    }
}

impl PostgresJournal {
    /// Makes the heartbeat of a node stale if it is older than that node's own bound. Returns whether it is stale now.
    pub(crate) async fn make_stale(&self, node: Owner) -> Result<bool> {
        // If it lives after all, its next heartbeat finds that it was stale, as after a pause.
        let sql = "UPDATE nodes SET heartbeat = least(heartbeat, clock_timestamp() - make_interval(secs => $3))
             WHERE id = $1 AND address = $2 AND heartbeat <= clock_timestamp() - make_interval(secs => $4) RETURNING id";
        let change = call!(sql, node.node, node.address, STALE_AFTER.as_secs_f64(), HOLD_LIMIT.as_secs_f64());
        let rows = run_alone(&**self.reader().await?, self.readers.route(), change).await;
        Ok(!rows.map_err(|e| read_failed(&e))?.is_empty())
    }
}
