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
    /// Only of this one, destroyed or not.
    pub agent: Option<String>,
    /// A duration back from now (`7d`, `1h30m`) or a date.
    pub since: Option<String>,
    /// Only the newest so many.
    pub limit: Option<u64>,
    /// Only rows after this number: for the next page.
    pub after: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct AuditResult {
    /// The newest last.
    pub rows: Vec<AuditRow>,
    /// The `after` of the next page; null at the end.
    pub next: Option<u64>,
}

/// One decision, or one change.
#[wire(PartialEq, Eq)]
pub struct AuditRow {
    /// One more than that of the row before it.
    pub id: u64,
    pub at: Timestamp,
    pub agent_id: Uuid,
    /// Its name at that time.
    pub agent: String,
    pub turn_id: Option<Uuid>,
    pub action: String,
    /// `allow`, `ask` or `deny` by a rule; `approved`, `approved_always`, `refused`, `expired` or `withdrawn` of what was asked;
    /// `changed`. Others may come.
    pub decision: String,
    /// Why, for a person.
    pub rule: String,
    /// On whose behalf, or who answered.
    pub user: String,
    /// Of a change: the value before and after.
    pub old: Option<String>,
    pub new: Option<String>,
    /// SHA-256, in hex, over the hash of the row before it and all of this one.
    pub hash: String,
}

#[wire(params)]
pub struct VerifyParams {}

#[wire(PartialEq, Eq)]
pub struct VerifyResult {
    /// How many there are.
    pub rows: u64,
    pub intact: bool,
    /// The first row that does not fit; null where all do, or where rows are missing at the end.
    pub broken_at: Option<u64>,
    /// What is wrong with it.
    pub reason: Option<String>,
    /// Hash of the newest row, in hex: kept elsewhere it shows later that nothing before it was changed. Null: there are no rows.
    pub head: Option<String>,
}
