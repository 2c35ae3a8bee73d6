//! The nodes of a cluster and the database that they share, as they are shown to people.

use std::time::Duration;

/// State of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeState {
    /// Its heartbeat is fresh.
    Running,
    /// The same, but it claims no agents.
    Draining,
    /// Its heartbeat is stale: other nodes may claim its agents.
    Silent,
    /// It has stopped in order.
    Stopped,
}

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    pub name: String,
    /// Address at which other nodes reach it; empty if it has none.
    pub address: String,
    /// Version of Chorus that it runs.
    pub version: String,
    pub boot: i64,
    pub state: NodeState,
    /// Time since its last heartbeat, by the clock of the database.
    pub heartbeat_age: Duration,
    /// Agents that it owns.
    pub agents: u64,
    /// Live contexts of these.
    pub contexts: u64,
    /// Hash of its permission profiles; empty if it has not told it.
    pub profiles: String,
    /// It has the workspaces of agents in a directory that all nodes share.
    pub shares_workspaces: bool,
    /// Load average of its machine over a minute, in percent of its processors; `None` until its second
    /// heartbeat, and of an earlier version.
    pub load_percent: Option<u64>,
    /// Time that its last heartbeat but one took, to the answer of the database.
    pub lag: Option<Duration>,
}

impl NodeRow {
    /// Returns whether the node can be given agents of another one: others can reach it, and it claims agents.
    #[must_use]
    pub fn takes_agents(&self) -> bool {
        self.state == NodeState::Running && !self.address.is_empty()
    }
}

/// Facts about the database that the nodes share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseReport {
    /// Version of the server.
    pub version: String,
    pub synchronous_commit: String,
    /// Empty if no standby has to have a commit before it is acknowledged.
    pub synchronous_standby_names: String,
    pub wal_level: String,
    pub fsync: String,
    pub full_page_writes: String,
    /// Limit of connections of ordinary users to the server.
    pub max_connections: u32,
    /// Connections that are open to the server, of all its databases.
    pub connections: u32,
    /// Connections that one node can open.
    pub connections_per_node: u32,
    /// A pooler such as pgbouncer is on the way.
    pub is_pooled: bool,
    /// Nanoseconds by which the clock of this machine is ahead of that of the database.
    pub clock_ahead: i64,
    /// Nanoseconds that the question took: the clocks are compared no more precisely.
    pub clock_precision: i64,
}
