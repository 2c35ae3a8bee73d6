//! The operation `cluster.status`.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_journal::{NodeRow, NodeState};
use chorus_proto::methods::cluster::{self, StatusParams, StatusResult};
use chorus_store::Store;

use super::require_cluster;

/// Lists the nodes of the cluster.
///
/// # Errors
/// `unsupported` if this daemon is not in one.
pub async fn status(store: &Arc<Store>, _: StatusParams) -> Result<StatusResult> {
    let ownership = require_cluster(store)?;
    let nodes = ownership.nodes().await?.into_iter().map(to_wire).collect();
    Ok(StatusResult { node: ownership.node().to_owned(), nodes })
}

fn to_wire(row: NodeRow) -> cluster::Node {
    cluster::Node {
        state: match row.state {
            NodeState::Running => cluster::NodeState::Running,
            NodeState::Draining => cluster::NodeState::Draining,
            NodeState::Silent => cluster::NodeState::Silent,
            NodeState::Stopped => cluster::NodeState::Stopped,
        },
        name: row.name,
        address: row.address,
        version: row.version,
        boot: u64::try_from(row.boot).unwrap_or_default(),
        agents: row.agents,
        contexts: row.contexts,
        load_percent: row.load_percent,
        lag_ms: row.lag.and_then(|lag| u64::try_from(lag.as_millis()).ok()),
        heartbeat_ms: u64::try_from(row.heartbeat_age.as_millis()).unwrap_or(u64::MAX),
    }
}
