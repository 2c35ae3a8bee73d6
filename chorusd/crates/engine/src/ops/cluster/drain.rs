//! The operation `cluster.drain`.

use chorus_base::closest_match;
use chorus_base::error::{Elsewhere, Error, Result};
use chorus_journal::{NodeRow, NodeState, Ownership};
use chorus_proto::ErrorKind;
use chorus_proto::methods::cluster::{DrainParams, DrainResult, LeftAgent, UnreachableNode};
use tokio::time::Instant;

use super::{AgentMover, require_cluster};
use crate::ops::settings::EffectiveConfig;

/// Moves the agents of a node to other nodes, and lets it claim no more; or lets it claim again.
///
/// # Errors
/// `unsupported` without a cluster; `not_found` for an unknown node; `conflict` if the node is down, or no other that it reaches takes
/// agents; an error that names the node if that is another one.
pub async fn drain(mover: &AgentMover, config: &EffectiveConfig, params: DrainParams) -> Result<DrainResult> {
    let ownership = require_cluster(&mover.claims.store)?;
    let own = ownership.node();
    if let Some(name) = params.node.as_deref().filter(|name| *name != own) {
        return Err(find_other(&**ownership, name).await?);
    }
    let node = own.to_owned();
    if params.undo {
        mover.undo().await?;
        return Ok(DrainResult {
            node,
            draining: false,
            moved: 0,
            left: Vec::new(),
            unreachable: Vec::new(),
            files_left: Vec::new(),
            duration_ms: 0,
        });
    }
    let begun = Instant::now();
    let moved = mover.move_all(begun + config.current().stop_timeout).await?;
    let left = moved.left.into_iter().map(|(agent, failure)| LeftAgent { agent, reason: failure.message }).collect();
    let unreachable = moved
        .unreachable
        .into_iter()
        .map(|(node, failure)| UnreachableNode { node, problem: failure.message, hint: failure.hint })
        .collect();
    let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (draining, files_left) = (!moved.is_undone, moved.files_left);
    Ok(DrainResult { node, draining, moved: moved.agents, left, unreachable, files_left, duration_ms })
}

/// Finds a node by its name.
///
/// # Errors
/// `not_found`.
pub(in crate::ops) fn find_node<'a>(nodes: &'a [NodeRow], name: &str) -> Result<&'a NodeRow> {
    nodes.iter().find(|node| node.name == name).ok_or_else(|| {
        let shown: String = name.chars().take(80).collect();
        let failure = Error::new(ErrorKind::NotFound, format!("no node {shown:?} in the cluster"));
        match closest_match(name, nodes.iter().map(|node| node.name.as_str())) {
            Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
            None => failure.hint("list the nodes: chorusctl cluster"),
        }
    })
}

/// Returns the error by which the request is forwarded to another node.
async fn find_other(ownership: &dyn Ownership, name: &str) -> Result<Error> {
    let nodes = ownership.nodes().await?;
    let node = find_node(&nodes, name)?;
    check_reachable(node)?;
    let there = Elsewhere { node: node.name.clone(), address: node.address.clone() };
    let failure = Error::new(ErrorKind::Busy, format!("the node {name} has to do that itself"))
        .hint(format!("use chorusctl on {name}"));
    Ok(Error { elsewhere: Some(Box::new(there)), ..failure })
}

fn check_reachable(node: &NodeRow) -> Result<()> {
    let name = &node.name;
    match node.state {
        NodeState::Running | NodeState::Draining => Ok(()),
        NodeState::Stopped => Err(Error::new(ErrorKind::Conflict, format!("the node {name} has stopped"))
            .hint("it has no agents; list the nodes: chorusctl cluster")),
        NodeState::Silent => {
            let seconds = node.heartbeat_age.as_secs();
            Err(Error::new(ErrorKind::Conflict, format!("the node {name} is down: no heartbeat for {seconds} s"))
                .hint("other nodes take its agents over as they are asked for"))
        }
    }
}
