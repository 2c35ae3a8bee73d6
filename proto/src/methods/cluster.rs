//! `cluster.*`: the daemons that share one database.

use super::{method, wire};

method!(
    /// Lists the nodes of the cluster.
    Status = "cluster.status", StatusParams => StatusResult
);
method!(
    /// Moves the agents of a node to other nodes, and lets it take no more until it restarts; or ends that.
    Drain = "cluster.drain", DrainParams => DrainResult
);
method!(
    /// Removes a node that does not run from the list, until it starts again.
    Forget = "cluster.forget", ForgetParams => ForgetResult
);

#[wire(params)]
pub struct StatusParams {}

#[wire(PartialEq, Eq)]
pub struct StatusResult {
    /// The node that answers.
    pub node: String,
    /// All nodes, by name.
    pub nodes: Vec<Node>,
}

/// A daemon of the cluster.
#[wire(PartialEq, Eq)]
pub struct Node {
    pub name: String,
    /// Address at which other nodes reach it; empty if it has none.
    pub address: String,
    pub version: String,
    /// Number of the start of this node, from 1.
    pub boot: u64,
    pub state: NodeState,
    /// Agents that it has.
    pub agents: u64,
    /// Live conversations of these.
    pub contexts: u64,
    /// Load average of its machine over the last minute, in percent of its processors.
    #[omit_empty]
    pub load_percent: Option<u64>,
    /// Milliseconds until the database answered its heartbeat.
    #[omit_empty]
    pub lag_ms: Option<u64>,
    /// Milliseconds since its last heartbeat.
    pub heartbeat_ms: u64,
    /// True if the node that answers has reached it just now; missing for that node itself, for one that does not run, and if the
    /// node that answers has no port.
    #[omit_empty]
    pub reachable: Option<bool>,
    /// Why it was not reached.
    #[omit_empty]
    pub problem: Option<String>,
    /// What to do about that.
    #[omit_empty]
    pub hint: Option<String>,
}

#[wire(Copy, PartialEq, Eq)]
pub enum NodeState {
    Running,
    /// It runs, and takes no agents.
    Draining,
    /// Its heartbeat is late: others may take its agents over.
    Silent,
    Stopped,
}

#[wire(params)]
pub struct DrainParams {
    /// Name of the node; the one that answers if it is missing.
    pub node: Option<String>,
    /// Let it take agents again.
    #[serde(default)]
    pub undo: bool,
}

#[wire(PartialEq, Eq)]
pub struct DrainResult {
    pub node: String,
    /// It takes no agents.
    pub draining: bool,
    /// Agents that other nodes have now.
    pub moved: u64,
    /// Agents that could not be moved.
    #[omit_empty]
    pub left: Vec<LeftAgent>,
    /// Nodes that got no agents, because the node does not reach them.
    #[omit_empty]
    pub unreachable: Vec<UnreachableNode>,
    /// Names of the agents that have moved without the files of their workspaces, which stay on the node.
    #[omit_empty]
    pub files_left: Vec<String>,
    pub duration_ms: u64,
}

#[wire(params)]
pub struct ForgetParams {
    /// Name of the node.
    pub node: String,
}

#[wire(PartialEq, Eq)]
pub struct ForgetResult {
    pub node: String,
    /// Agents that it had, and that the next requests for them take to other nodes.
    pub agents: u64,
}

/// An agent that could not be moved.
#[wire(PartialEq, Eq)]
pub struct LeftAgent {
    pub agent: String,
    pub reason: String,
}

/// A node that the one that answers does not reach.
#[wire(PartialEq, Eq)]
pub struct UnreachableNode {
    pub node: String,
    /// Why not.
    pub problem: String,
    #[omit_empty]
    pub hint: Option<String>,
}
