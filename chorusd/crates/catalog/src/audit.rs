//! The audit log: one row per decision about an action or change of an agent, each with the hash of the previous row.

use std::fmt::Debug;

use chorus_redact::Redactor;
use jiff::Timestamp;
use uuid::Uuid;

use crate::{AuditHead, CatalogRead, CatalogWrite, ChainVerifier};

/// Limit of the rows in a page.
pub const MAX_AUDIT_PAGE_ROWS: usize = 1000;
/// A page ends with the row by which its texts have more bytes than this.
pub const MAX_AUDIT_PAGE_BYTES: usize = 1 << 20;

/// A decision to be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditDecision {
    pub at: Timestamp,
    pub agent: Uuid,
    /// Name of the agent at that time.
    pub agent_name: String,
    pub turn: Option<Uuid>,
    /// The requested action.
    pub action: String,
    /// `allow`, `ask`, `deny` for decisions of a rule; `approved`, `approved_always`, `refused`, `expired`, `withdrawn`
    /// for outcomes of approvals; `changed`, and `not_changed` if the change was not made after all; `lost` if rows are
    /// missing before this one.
    pub decision: String,
    /// The reason, in words for people.
    pub rule: String,
    /// The user on whose behalf the action was requested, or who decided.
    pub user: String,
    /// The value before (`old`) and after (`new`) a change.
    pub old: Option<String>,
    pub new: Option<String>,
}

impl AuditDecision {
    /// Returns the row without secrets, as it is stored.
    #[must_use]
    pub fn redacted(self, redactor: &Redactor) -> Self {
        let clean = |text: String| redactor.redact_text(&text).into_owned();
        let (old, new) = (self.old.map(clean), self.new.map(clean));
        Self { action: clean(self.action), rule: clean(self.rule), old, new, ..self }
    }
}

/// A row of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub id: i64,
    pub row: AuditDecision,
    /// 32 bytes, unless somebody has changed it.
    pub hash: Vec<u8>,
}

impl AuditEntry {
    /// Returns the number of bytes by which a row counts in a page.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.row.action.len() + self.row.rule.len() + length(&self.row.old) + length(&self.row.new)
    }
}

/// Selects rows of the log.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Empty means all agents.
    pub agents: Vec<Uuid>,
    pub since: Option<Timestamp>,
    /// Only rows with a higher number.
    pub after: i64,
    /// Only the newest `limit` rows.
    pub limit: Option<u64>,
}

/// The audit log. Its rows are numbered from 1, without gaps.
pub trait AuditLog: Debug + Send + Sync {
    /// Appends a decision to the log, redacted. The future completes once it is on the disk.
    ///
    /// # Errors
    /// Fails if the newest row has no valid hash.
    fn append(&self, row: AuditDecision) -> CatalogWrite<()>;

    /// Returns a page of the log, oldest row first, and true if there are more: at most [`MAX_AUDIT_PAGE_ROWS`] rows, and
    /// none after [`MAX_AUDIT_PAGE_BYTES`].
    fn page(&self, filter: AuditFilter) -> CatalogRead<'_, (Vec<AuditEntry>, bool)>;

    /// Returns the ids of agents that rows of the log call `name`, including destroyed ones.
    fn agents_named(&self, name: String) -> CatalogRead<'_, Vec<Uuid>>;

    /// Verifies the whole hash chain. `known` is a row that the log must contain.
    fn verify(&self, known: Option<AuditHead>) -> CatalogRead<'_, ChainVerifier>;
}
