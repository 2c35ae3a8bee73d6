//! The operation `cluster.forget`.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_journal::NodeState;
use chorus_proto::ErrorKind;
use chorus_proto::methods::cluster::{ForgetParams, ForgetResult};
use chorus_proto::pluralize::pluralize;
use chorus_store::Store;

use super::drain::find_node;
use super::require_cluster;

/// Removes a node that does not come back from the list. The agents that it had belong to nobody then.
///
/// # Errors
/// `unsupported` without a cluster; `not_found` for an unknown node; `conflict` if the node runs.
pub async fn forget(store: &Arc<Store>, params: ForgetParams) -> Result<ForgetResult> {
    let ownership = require_cluster(store)?;
    let name = params.node;
    let nodes = ownership.nodes().await?;
    let found = find_node(&nodes, &name)?;
    if name == ownership.node() {
        let what = format!("the node {name} is the one that answers");
        return Err(Error::new(ErrorKind::Conflict, what).hint("forget it from another node, once it has stopped"));
    }
    if matches!(found.state, NodeState::Running | NodeState::Draining) {
        return Err(running_error(&name, found.agents));
    }
    match ownership.forget_node(name.clone()).await? {
        Some(agents) => {
            tracing::info!(node = name, agents, "forgot a node");
            Ok(ForgetResult { node: name, agents })
        }
        // It has started just now.
        None => Err(running_error(&name, found.agents)),
    }
}

fn running_error(name: &str, agents: u64) -> Error {
    let has = match agents {
        0 => String::new(),
        agents => format!(", and has {}", pluralize(agents, "agent")),
    };
    Error::new(ErrorKind::Conflict, format!("the node {name} is running{has}"))
        .hint(format!("stop it first, which moves its agents to other nodes: chorusctl daemon stop on {name}"))
}
