//! The rows of the database, the memory of each node, and the requests between them.

/// Most nodes of a model.
pub const MAX_NODES: usize = 3;
/// Most agents of a model.
pub const MAX_AGENTS: usize = 2;
/// Longest log. A correct model needs one entry a message, one without a rule may need more.
pub const MAX_LOG: usize = 4;
/// Most requests at a time.
pub const MAX_IN_FLIGHT: usize = 5;

/// A process of a node: the boot number grows with each start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The number of the node, from 0.
    pub node: u8,
    /// The number of the start, from 1.
    pub boot: u8,
}

/// A write that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// The place in the log that the writer gave it, from 0.
    pub seq: u8,
    /// The epoch under which it was written.
    pub epoch: u8,
    /// The process that wrote it.
    pub writer: Owner,
    /// The number of the message at the client, from 1.
    pub message: u8,
    /// The epoch of the row at the commit.
    pub row_epoch: u8,
}

/// The row of an agent, with its log in the order of the commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Row {
    /// The process that may write; none at first and after a release.
    pub owner: Option<Owner>,
    /// Raised by each claim.
    pub epoch: u8,
    /// The node that asks the owner to give the agent up.
    pub wanted_by: Option<u8>,
    /// The writes that were accepted.
    pub log: [Option<Entry>; MAX_LOG],
    /// Messages that were acknowledged to the client, which sends one after the other.
    pub acknowledged: u8,
}

impl Row {
    /// Returns the writes that were accepted, in the order of the commits.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> + Clone {
        self.log.iter().flatten()
    }

    /// Returns the place of the next write.
    #[must_use]
    pub fn next_seq(&self) -> u8 {
        self.entries().count().try_into().unwrap_or(u8::MAX)
    }

    /// Returns true if a message was accepted.
    #[must_use]
    pub fn has_message(&self, message: u8) -> bool {
        self.entries().any(|entry| entry.message == message)
    }
}

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Life {
    /// It claims agents and writes.
    Running,
    /// It finishes its writes and gives its agents up.
    Stopping,
    /// It has ended, or was never started.
    #[default]
    Down,
}

/// The heartbeat of a node as the database's clock sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Heartbeat {
    /// Recent enough that nobody may claim the agents of the node.
    #[default]
    Fresh,
    /// Too old.
    Stale,
    /// The node said that it stops.
    Ended,
}

/// A node: its row, and what its process holds in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Node {
    /// The number of its last start, 0 before the first.
    pub boot: u8,
    /// The state of its process.
    pub life: Life,
    /// Its heartbeat in the database.
    pub heartbeat: Heartbeat,
    /// It takes no steps, as after SIGSTOP.
    pub paused: bool,
    /// Cut off from the database.
    pub cut: bool,
    /// Past the bound that it sets itself after its last good heartbeat: it begins nothing.
    pub busy: bool,
    /// The epoch under which it believes to own each agent, 0 if it does not.
    pub held: [u8; MAX_AGENTS],
}

impl Node {
    /// Returns true if the process takes steps.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.life != Life::Down && !self.paused
    }

    /// Returns true if the process can reach the database.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.is_active() && !self.cut
    }
}

/// A statement or transaction, and how far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Work {
    /// A claim that the database has not carried out.
    Claim,
    /// A claim that has read the epoch and not yet written it, in the model whose claim is two statements.
    ClaimAfterRead { epoch: u8 },
    /// The answer to a claim.
    Granted { epoch: u8 },
    /// A write of a message that the database has not begun.
    Write { epoch: u8, message: u8 },
    /// The epoch was compared; the row is locked until the commit.
    WriteChecked { epoch: u8, message: u8, seq: u8 },
    /// The answer to a write that was committed.
    Accepted { message: u8 },
    /// The answer to a write under an epoch that has passed.
    Refused { epoch: u8 },
    /// A release, which nobody awaits.
    Release { epoch: u8 },
}

/// A request of a process for an agent, at the database or on its way there or back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    /// The agent that it is about.
    pub agent: u8,
    /// The process that sent it.
    pub from: Owner,
    /// The process waits for the answer. If it crashed or lost the connection, the request may still be carried out.
    pub awaited: bool,
    /// How far it has come.
    pub work: Work,
}

impl Request {
    /// Returns true if the database has carried it out and the answer is on its way.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        matches!(self.work, Work::Granted { .. } | Work::Accepted { .. } | Work::Refused { .. })
    }
}

/// Everything at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State {
    /// The rows of the agents.
    pub rows: [Row; MAX_AGENTS],
    /// The nodes.
    pub nodes: [Node; MAX_NODES],
    /// Sorted, so that the order of arrival makes no difference.
    pub requests: [Option<Request>; MAX_IN_FLIGHT],
    /// From here on nothing fails.
    pub calm: bool,
}

impl State {
    /// Returns the state in which no agent has an owner and every node runs.
    #[must_use]
    pub fn initial(nodes: u8) -> Self {
        let mut state = Self {
            rows: [Row::default(); MAX_AGENTS],
            nodes: [Node::default(); MAX_NODES],
            requests: [None; MAX_IN_FLIGHT],
            calm: false,
        };
        for node in state.nodes.iter_mut().take(usize::from(nodes)) {
            *node = Node { boot: 1, life: Life::Running, ..Node::default() };
        }
        state
    }

    /// Returns the row of an agent.
    #[must_use]
    pub fn row(&self, agent: u8) -> &Row {
        &self.rows[usize::from(agent)]
    }

    /// Returns a node.
    #[must_use]
    pub fn node(&self, node: u8) -> &Node {
        &self.nodes[usize::from(node)]
    }

    /// Returns the row of an agent, to be changed.
    pub fn row_mut(&mut self, agent: u8) -> &mut Row {
        &mut self.rows[usize::from(agent)]
    }

    /// Returns a node, to be changed.
    pub fn node_mut(&mut self, node: u8) -> &mut Node {
        &mut self.nodes[usize::from(node)]
    }

    /// Returns the process of a node that runs now, or ran last.
    #[must_use]
    pub fn process(&self, node: u8) -> Owner {
        Owner { node, boot: self.node(node).boot }
    }

    /// Returns all requests.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().flatten()
    }

    /// Returns the request for an agent whose answer a process awaits.
    #[must_use]
    pub fn awaited(&self, node: u8, agent: u8) -> Option<&Request> {
        self.requests().find(|request| request.awaited && request.from.node == node && request.agent == agent)
    }

    /// Replaces a request, or removes it.
    pub fn replace(&mut self, old: &Request, new: Option<Request>) {
        if let Some(place) = self.requests.iter_mut().find(|place| place.as_ref() == Some(old)) {
            *place = new;
        }
        self.requests.sort_unstable();
    }

    /// Adds a request.
    pub fn add(&mut self, request: Request) {
        if let Some(place) = self.requests.iter_mut().find(|place| place.is_none()) {
            *place = Some(request);
        }
        self.requests.sort_unstable();
    }
}
