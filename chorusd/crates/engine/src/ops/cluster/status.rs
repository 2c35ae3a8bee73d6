//! The operation `cluster.status`.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_journal::{NodeRow, NodeState};
use chorus_proto::methods::cluster::{self, StatusParams, StatusResult};
use chorus_store::Store;

use super::{PeerChecksCell, REACH_LIMIT, reach_all, require_cluster};

/// Lists the nodes of the cluster. Those that run are tried, all at once.
///
/// # Errors
/// `unsupported` if this daemon is not in one.
pub async fn status(store: &Arc<Store>, peer_checks: &PeerChecksCell, _: StatusParams) -> Result<StatusResult> {
    let ownership = require_cluster(store)?;
    let rows = ownership.nodes().await?;
    let is_up = |row: &&NodeRow| matches!(row.state, NodeState::Running | NodeState::Draining);
    let others = rows.iter().filter(|row| row.name != ownership.node()).filter(is_up);
    let reached = reach_all(&**ownership, peer_checks, others.clone(), REACH_LIMIT).await.unwrap_or_default();
    let mut reached: HashMap<String, Result<()>> = others.map(|row| row.name.clone()).zip(reached).collect();
    let nodes = rows.into_iter().map(|row| {
        let reached = reached.remove(&row.name);
        to_wire(row, reached)
    });
    Ok(StatusResult { node: ownership.node().to_owned(), nodes: nodes.collect() })
}

fn to_wire(row: NodeRow, reached: Option<Result<()>>) -> cluster::Node {
    let reachable = reached.as_ref().map(Result::is_ok);
    let (problem, hint) = match reached {
        Some(Err(failure)) => (Some(failure.message), failure.hint),
        _ => (None, None),
    };
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
        reachable,
        problem,
        hint,
    }
}
