//! How much of everything a model has, and which rule of the protocol it leaves out.

/// A rule of the protocol that a model can leave out, to show that the rule is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A write compares its epoch with that of the row.
    WriteComparesEpoch,
    /// The comparison locks the row until the commit.
    WriteLocksRow,
    /// A write looks for its idempotency key before it adds to the log.
    WriteHasKey,
    /// The answer follows the commit.
    AnswerFollowsCommit,
    /// A claim raises the epoch.
    ClaimRaisesEpoch,
    /// A claim raises the epoch even if a node takes back what it owned before its restart.
    RestartRaisesEpoch,
    /// A claim is one statement that checks and updates.
    ClaimIsOneStatement,
    /// A node may claim what the row says it owns in this boot, because the answer to its claim may have been lost.
    ClaimMayRepeat,
    /// A claim of another node's agent needs a heartbeat that is stale.
    ClaimNeedsStaleHeartbeat,
    /// A release compares its epoch with that of the row.
    ReleaseComparesEpoch,
    /// At a stop, the heartbeat ends after everything else.
    HeartbeatEndsLast,
    /// The database ends the transaction of a process that says nothing more.
    IdleTransactionsEnd,
}

/// Who decides that a heartbeat is stale, and what else is modeled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heartbeats {
    /// Every heartbeat may be found stale at every moment, and every node may give an agent up at every moment. A node that is
    /// paused or cut off is one whose next step comes later, so neither is a state.
    AnyMayBeStale,
    /// Nodes send heartbeats, are paused, cut off, and stopped. Any heartbeat may be found stale until it is renewed.
    Sent,
    /// As `Sent`, but the heartbeat of a node is found stale only while the node cannot send one.
    OnTime,
}

/// The bounds of a model.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Number of nodes.
    pub nodes: u8,
    /// Number of agents.
    pub agents: u8,
    /// Highest epoch of an agent.
    pub epochs: u8,
    /// Claims of all agents together.
    pub claims: u8,
    /// Messages that the client of each agent sends.
    pub messages: u8,
    /// Messages of all agents together.
    pub writes: u8,
    /// Crashes of all nodes together.
    pub crashes: u8,
    /// Requests that are at the database or on their way, those of crashed nodes included.
    pub in_flight: u8,
    /// The part of heartbeats that is modeled.
    pub heartbeats: Heartbeats,
    /// Nodes may be paused, cut off, and lose a connection.
    pub silences: bool,
    /// Nodes may be stopped.
    pub stops: bool,
    /// A state may be followed by a time without faults, in which each agent is wanted.
    pub calm: bool,
    /// States that differ only in the names of nodes or agents are one.
    pub symmetric: bool,
    /// The rule that it leaves out.
    pub without: Option<Rule>,
}

impl Setting {
    /// Returns true if the model obeys a rule.
    #[must_use]
    pub fn has(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// Returns true if heartbeats, pauses, cuts and stops are modeled.
    #[must_use]
    pub fn has_heartbeats(&self) -> bool {
        self.heartbeats != Heartbeats::AnyMayBeStale
    }

    /// Returns the same model without a rule.
    #[must_use]
    pub fn without(self, rule: Rule) -> Self {
        Self { without: Some(rule), ..self }
    }
}
