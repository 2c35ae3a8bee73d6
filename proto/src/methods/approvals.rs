//! `approvals.*`: actions of agents that wait for a person's decision.

use jiff::Timestamp;
use uuid::Uuid;

use super::permissions::{AgentRule, Part, Rule};
use super::{method, wire};

method!(
    /// Lists the open approvals.
    List = "approvals.list", ListParams => ListResult
);
method!(
    /// Approves an action once. With `always` or `pattern`, rules of the agent allow it from now on; with `turn`, what else
    /// its turn asks about is approved as well.
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
    /// Name of the conversation that asks, unless that is `main`.
    #[omit_empty]
    pub conversation: Option<String>,
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
    /// The patterns that `pattern` keeps, such as `git status *`: one for each part of a command that is not allowed
    /// already. Empty if no pattern is proven to cover no other program.
    #[omit_empty]
    pub patterns: Vec<String>,
    /// True if `turn` is possible.
    #[omit_empty]
    pub turn_allowed: bool,
    /// Why it needs approval, in plain words; completes "asked because".
    #[omit_empty]
    pub reason: Option<String>,
    /// Absolute path of the directory that it runs in.
    #[omit_empty]
    pub directory: Option<String>,
    /// What a command may reach; missing for other actions, and for decided ones.
    #[omit_empty]
    pub reach: Option<Reach>,
    pub decided_at: Option<Timestamp>,
    /// Null if nobody decided: it expired, or the turn ended.
    pub decided_by: Option<String>,
}

/// What a command may reach.
#[wire(PartialEq, Eq)]
pub struct Reach {
    /// True if it runs in a sandbox. Otherwise it may do whatever the user of the daemon may.
    pub sandboxed: bool,
    pub network: bool,
    /// Absolute paths that it may write, besides temporary files of its own; empty without a sandbox.
    pub writes: Vec<String>,
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
    /// Also allow exactly this action permanently.
    pub always: bool,
    /// Also allow what the approval's patterns cover permanently.
    pub pattern: bool,
    /// Also allow what else this turn asks about, until it ends.
    pub turn: bool,
    /// The hash of the approval that was shown. If it is not that of the approval with this id, nothing is approved.
    pub hash: Option<String>,
}

#[wire(PartialEq, Eq)]
pub struct ApproveResult {
    pub approval: Approval,
    /// True if rules of the agent allow it from now on.
    pub always: bool,
    /// Always null. Earlier releases copied the agent's profile to allow an action.
    pub profile_before: Option<String>,
    /// The rules that were added for it.
    #[omit_empty]
    pub rules: Vec<AgentRule>,
    /// True if what else its turn asks about is approved.
    #[omit_empty]
    pub turn: bool,
    /// Warnings for people.
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct DenyParams {
    pub id: String,
    /// The reason, for the model; at most 4 KiB.
    pub reason: Option<String>,
}

#[wire(PartialEq, Eq)]
pub struct DenyResult {
    pub approval: Approval,
}
