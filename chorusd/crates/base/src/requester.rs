//! On whose behalf something is done.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The role that the owner of a Discord server gets in addition. No real role can have this name.
pub const SERVER_OWNER: &str = "@owner";

/// The requester of a turn, or the person who answers an approval.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Requester {
    /// The user of the daemon, or root, at the socket.
    Owner,
    /// A member who wrote in a Discord channel.
    Person { id: String, name: String, roles: Vec<String> },
    /// No person: another agent or a timer.
    Nobody,
}

/// Someone who answers an approval, with the rights that the socket or the Discord connection has established. Nothing
/// within a request can set these rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answerer {
    pub requester: Requester,
    /// Whether they may answer for everybody.
    pub is_approver: bool,
}

impl From<Requester> for Answerer {
    /// Converts without the right to answer for others.
    fn from(who: Requester) -> Self {
        Self { requester: who, is_approver: false }
    }
}

impl fmt::Display for Requester {
    /// Formats it as in the audit log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner => f.write_str("owner"),
            Self::Person { id, .. } => write!(f, "discord:{id}"),
            Self::Nobody => f.write_str("nobody"),
        }
    }
}
