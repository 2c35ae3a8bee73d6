//! `audit` and `audit.verify`: the log of decisions about actions of agents.

use jiff::Timestamp;
use uuid::Uuid;

use super::{method, wire};

method!(
    /// Reads the log of decisions and changes, the newest last.
    Audit = "audit", AuditParams => AuditResult
);
method!(
    /// Verifies the hash chain of the log.
    Verify = "audit.verify", VerifyParams => VerifyResult
);

#[wire(params)]
pub struct AuditParams {
    /// Only those of this agent, deleted or not.
    pub agent: Option<String>,
    /// A duration back from now (`7d`, `1h30m`) or a date.
    pub since: Option<String>,
    /// Only this number of the newest rows.
    pub limit: Option<u64>,
    /// Only rows after this number, for the next page.
    pub after: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct AuditResult {
    /// The newest row is last.
    pub rows: Vec<AuditRow>,
    /// The `after` of the next page; null at the end.
    pub next: Option<u64>,
}

/// A decision or a change.
#[wire(PartialEq, Eq)]
pub struct AuditRow {
    /// One more than the previous row's.
    pub id: u64,
    pub at: Timestamp,
    pub agent_id: Uuid,
    /// Name of the agent at that time.
    pub agent: String,
    pub turn_id: Option<Uuid>,
    pub action: String,
    /// `allow`, `ask` or `deny` by a rule; `approved`, `approved_always`, `refused`, `expired` or `withdrawn` for an
    /// approval; `changed`. More may be added.
    pub decision: String,
    /// The reason, for people.
    pub rule: String,
    /// The requester, or the person who answered.
    pub user: String,
    /// For a change: the old and the new value.
    pub old: Option<String>,
    pub new: Option<String>,
    /// SHA-256, in hex, of the previous row's hash and all fields of this row.
    pub hash: String,
}

#[wire(params)]
pub struct VerifyParams {}

#[wire(PartialEq, Eq)]
pub struct VerifyResult {
    /// Number of rows.
    pub rows: u64,
    pub intact: bool,
    /// The first row that does not match; null if all match, or if rows are missing at the end.
    pub broken_at: Option<u64>,
    /// Description of the problem.
    pub reason: Option<String>,
    /// Hash of the newest row, in hex. Store it elsewhere to prove later that nothing before it was changed. Null if
    /// there are no rows.
    pub head: Option<String>,
}
