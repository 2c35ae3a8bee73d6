//! `approvals.*`: actions of agents that wait for a person's decision.

use jiff::Timestamp;
use uuid::Uuid;

use super::permissions::{Part, Rule};
use super::{method, wire};

method!(
    /// Lists the open approvals.
    List = "approvals.list", ListParams => ListResult
);
method!(
    /// Approves an action once. With `always`, the agent's profile allows exactly this action from now on.
    Approve = "approvals.approve", ApproveParams => ApproveResult
);
method!(
    /// Denies an action; the model is told.
    Deny = "approvals.deny", DenyParams => DenyResult
);

/// Status of an approval.
#[wire(Copy, PartialEq, Eq, Hash)]
pub enum Status {
    Open,
    Approved,
    /// Denied by somebody, or because the turn ended.
    Denied,
    /// Nobody answered in time.
    Expired,
}

impl Status {
    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
        }
    }
}

/// The name of an argument, or `to`: the destination of a call.
#[wire(PartialEq, Eq)]
pub struct Detail {
    pub name: String,
    /// Complete. Show it with all invisible characters made visible.
    pub text: String,
}

/// An action that needs approval.
#[wire(PartialEq, Eq)]
pub struct Approval {
    /// The id: six letters and digits.
    pub id: String,
    pub agent: String,
    pub turn_id: Uuid,
    /// The call's id from the model.
    pub call_id: String,
    /// The whole action, exactly as it will run. Show it with all invisible characters made visible.
    pub action: String,
    /// Further details that the action does not contain; only of open approvals.
    #[omit_empty]
    pub details: Vec<Detail>,
    /// SHA-256, in hex, of the action and everything that the approval is bound to.
    pub hash: String,
    /// The reason why it needs approval.
    pub rule: Rule,
    /// The parts of a command that are checked separately; otherwise the action itself.
    pub parts: Vec<Part>,
    /// The requester: `owner`, `nobody` (no person), or somebody in a channel.
    pub requester: String,
    pub asked_at: Timestamp,
    pub expires_at: Timestamp,
    pub status: Status,
    /// Why it cannot be approved permanently; null if it can.
    pub not_always: Option<String>,
    pub decided_at: Option<Timestamp>,
    /// Null if nobody decided: it expired, or the turn ended.
    pub decided_by: Option<String>,
}

#[wire(params)]
pub struct ListParams {
    /// Only those of this agent.
    pub agent: Option<String>,
    /// Include the last hundred decided ones.
    pub all: bool,
    /// Index of the first entry.
    pub offset: Option<u64>,
    /// Maximum number; fewer are returned if the frame would be too long.
    pub limit: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct ListResult {
    /// In the order of the requests.
    pub approvals: Vec<Approval>,
    /// The next `offset`; missing at the end.
    #[omit_empty]
    pub next: Option<u64>,
}

#[wire(params)]
pub struct ApproveParams {
    pub id: String,
    /// Allow the action permanently.
    pub always: bool,
    /// The hash of the approval that was shown. If it is not that of the approval with this id, nothing is approved.
    pub hash: Option<String>,
}

#[wire(PartialEq, Eq)]
pub struct ApproveResult {
    pub approval: Approval,
    /// True if the agent's profile allows it from now on.
    pub always: bool,
    /// The named profile that the agent had; it is unchanged, and the agent has its own copy now.
    pub profile_before: Option<String>,
    /// Warnings for people.
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct DenyParams {
    pub id: String,
}

#[wire(PartialEq, Eq)]
pub struct DenyResult {
    pub approval: Approval,
}
