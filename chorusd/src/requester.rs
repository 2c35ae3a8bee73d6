//! On whose behalf something is done.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Stands among the roles of whoever owns the server that they speak in. No role of Discord passes for it.
pub const SERVER_OWNER: &str = "@owner";

/// Who asked for a turn, or answers an approval.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Requester {
    /// The daemon's own user, or root, at the socket.
    Owner,
    /// Somebody in a channel.
    Person { id: String, name: String, roles: Vec<String> },
    /// No person: another agent, a timer.
    Nobody,
}

/// Who answers what somebody else may have asked, with the right that the front door found them to have. Nothing that a request says
/// makes one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answerer {
    pub requester: Requester,
    /// They may answer for everybody.
    pub is_approver: bool,
}

impl From<Requester> for Answerer {
    /// With no more right than to answer for themselves.
    fn from(who: Requester) -> Self {
        Self { requester: who, is_approver: false }
    }
}

impl fmt::Display for Requester {
    /// As the audit log has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner => f.write_str("owner"),
            Self::Person { id, .. } => write!(f, "discord:{id}"),
            Self::Nobody => f.write_str("nobody"),
        }
    }
}
