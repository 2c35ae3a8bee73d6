//! Nodes, as the two ends of a connection know each other.

use std::fmt;

use chorus_base::requester::Requester;

/// This process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalNode {
    /// Name of the node, unique in the cluster. The certificate has it as `chorus:node:ID`.
    pub id: String,
    /// Number of this process among those of the node.
    pub boot: i64,
    /// Version of Chorus.
    pub version: String,
}

/// A node to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerAddress {
    /// Name of the node.
    pub id: String,
    /// Its host and port: what it advertises.
    pub address: String,
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} at {}", self.id, self.address)
    }
}

/// The process at the other end of a connection. Its certificate names the node; boot number and version are what the
/// node says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerNode {
    pub id: String,
    pub boot: i64,
    /// Version of Chorus.
    pub version: String,
}

/// The source of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A client of this node, on whose behalf `Requester` says.
    Client(Requester),
    /// A client of another node, which vouches for the requester. Its requests are never forwarded again.
    Peer { node: PeerNode, requester: Requester },
}

impl Origin {
    /// The person or program on whose behalf requests are carried out.
    #[must_use]
    pub fn requester(&self) -> &Requester {
        match self {
            Self::Client(requester) | Self::Peer { requester, .. } => requester,
        }
    }
}
