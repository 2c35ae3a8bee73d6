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

/// Where an approval stands.
#[wire(Copy, PartialEq, Eq, Hash)]
pub enum Status {
    Open,
    Approved,
    /// By somebody, or because the turn ended.
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

/// An argument, or `to`: where a call leads.
#[wire(PartialEq, Eq)]
pub struct Detail {
    pub name: String,
    /// Whole. Show it with everything in it made visible.
    pub text: String,
}

/// One action that somebody is asked about.
#[wire(PartialEq, Eq)]
pub struct Approval {
    /// Six letters and digits.
    pub id: String,
    pub agent: String,
    pub turn_id: Uuid,
    /// The model's id of the call.
    pub call_id: String,
    /// The whole action, exactly as it is carried out. Show it with everything in it made visible.
    pub action: String,
    /// What it does besides, that the action does not say; of open ones only.
    #[omit_empty]
    pub details: Vec<Detail>,
    /// SHA-256, in hex, of the action with all that it is bound to.
    pub hash: String,
    /// Why it is asked about.
    pub rule: Rule,
    /// Of a command that is judged in parts, each of them; else the action itself.
    pub parts: Vec<Part>,
    /// On whose behalf: `owner`, `nobody` (no person), or somebody in a channel.
    pub requester: String,
    pub asked_at: Timestamp,
    pub expires_at: Timestamp,
    pub status: Status,
    /// Why it cannot be approved for ever; null: it can.
    pub not_always: Option<String>,
    pub decided_at: Option<Timestamp>,
    /// Null: nobody; it expired, or the turn ended.
    pub decided_by: Option<String>,
}

#[wire(params)]
pub struct ListParams {
    /// Only of this one.
    pub agent: Option<String>,
    /// The last hundred that were decided, too.
    pub all: bool,
    /// Index of the first one.
    pub offset: Option<u64>,
    /// At most so many; fewer come where the frame would get too long.
    pub limit: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct ListResult {
    /// In the order they were asked.
    pub approvals: Vec<Approval>,
    /// The `offset` to go on with; missing at the end.
    #[omit_empty]
    pub next: Option<u64>,
}

#[wire(params)]
pub struct ApproveParams {
    pub id: String,
    /// From now on, too.
    pub always: bool,
    /// That of the approval that was shown: where the one of this id has another, nothing is approved.
    pub hash: Option<String>,
}

#[wire(PartialEq, Eq)]
pub struct ApproveResult {
    pub approval: Approval,
    /// Whether the agent's profile allows it from now on.
    pub always: bool,
    /// The named profile that the agent had; it stays as it is, and the agent has one of its own now.
    pub profile_before: Option<String>,
    /// What a person should know.
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
