//! The hash chain of the audit log. docs/PERMISSIONS.md specifies it for other programs.

use std::sync::{Arc, OnceLock};

use chorus_base::hex;
use chorus_journal::to_nanos;
use sha2::{Digest as _, Sha256};

use super::audit::{AuditDecision, AuditEntry};

/// Number and hash of the newest row of an audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditHead {
    pub id: i64,
    pub hash: [u8; 32],
}

impl AuditHead {
    /// The head of an empty log.
    pub(crate) const NONE: Self = Self { id: 0, hash: [0; 32] };

    /// The hash in hex.
    #[must_use]
    pub fn hex(&self) -> String {
        hex(&self.hash)
    }
}

/// SHA-256 of the previous hash and of every field in the order of the table: numbers as 8 bytes, texts and ids as
/// their length in 8 bytes followed by their bytes, optional fields after a byte that says whether they are present.
/// Numbers are big-endian.
#[must_use]
pub(super) fn row_hash(before: &[u8; 32], id: i64, row: &AuditDecision) -> [u8; 32] {
    let mut sum = FieldHasher(Sha256::new_with_prefix(before));
    sum.number(id);
    sum.number(to_nanos(row.at));
    sum.bytes(row.agent.as_bytes());
    sum.bytes(row.agent_name.as_bytes());
    sum.optional(row.turn.as_ref().map(|turn| turn.as_bytes().as_slice()));
    for text in [&row.action, &row.decision, &row.rule, &row.user] {
        sum.bytes(text.as_bytes());
    }
    for text in [&row.old, &row.new] {
        sum.optional(text.as_ref().map(String::as_bytes));
    }
    sum.0.finalize().into()
}

struct FieldHasher(Sha256);

impl FieldHasher {
    fn number(&mut self, number: i64) {
        self.0.update(number.to_be_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn optional(&mut self, bytes: Option<&[u8]>) {
        self.0.update([u8::from(bytes.is_some())]);
        if let Some(bytes) = bytes {
            self.bytes(bytes);
        }
    }
}

/// Verifies the chain row by row.
#[derive(Debug, Clone)]
pub struct ChainVerifier {
    /// Number of rows.
    pub rows: u64,
    /// The last row that fits the chain.
    pub head: AuditHead,
    /// The first fault: the number of its row, if it concerns a row, and a description.
    pub broken: Option<(Option<i64>, String)>,
    /// The audit anchor, which the log must contain.
    known: Option<AuditHead>,
}

impl ChainVerifier {
    pub(super) fn new(known: Option<AuditHead>) -> Self {
        Self { rows: 0, head: AuditHead::NONE, broken: None, known }
    }

    /// Verifies the rows after `head`.
    #[must_use]
    pub(crate) fn starting_after(head: AuditHead) -> Self {
        Self { head, ..Self::new(None) }
    }

    pub(super) fn last_id(&self) -> i64 {
        self.head.id
    }

    /// Returns whether all rows so far fit the chain.
    #[must_use]
    pub(crate) fn is_intact(&self) -> bool {
        self.broken.is_none()
    }

    /// Verifies the next row.
    pub(crate) fn check_row(&mut self, entry: &AuditEntry) {
        let due = self.head.id + 1;
        let hash = row_hash(&self.head.hash, entry.id, &entry.row);
        let wrong = if entry.id != due {
            Some(format!("entry {due} before it is missing"))
        } else if entry.hash != hash {
            Some("its hash does not match its content and the previous entry".to_owned())
        } else if self.known.is_some_and(|known| known.id == entry.id && known.hash != hash) {
            Some("it is not the original entry: the log was rewritten from here or earlier".to_owned())
        } else {
            None
        };
        if let Some(wrong) = wrong {
            self.broken = Some((Some(entry.id), wrong));
            return;
        }
        self.rows += 1;
        self.head = AuditHead { id: entry.id, hash };
    }

    pub(super) fn set_row_count(&mut self, rows: u64) {
        self.rows = rows;
    }

    pub(super) fn finish(mut self) -> Self {
        if let Some(known) = self.known.filter(|known| self.broken.is_none() && known.id > self.head.id) {
            let (first, last) = (self.head.id + 1, known.id);
            self.broken = Some((None, format!("entries {first} to {last} are missing at the end")));
        }
        self
    }
}

type AuditCallback = dyn Fn(AuditHead) + Send + Sync;

/// Callback for every row of the audit log after its commit.
#[derive(Clone, Default)]
pub(super) struct AuditListener(Arc<OnceLock<Box<AuditCallback>>>);

impl AuditListener {
    pub(super) fn set(&self, listener: impl Fn(AuditHead) + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(listener));
    }

    pub(super) fn notify(&self, head: AuditHead) {
        if let Some(listener) = self.0.get() {
            listener(head);
        }
    }
}

impl std::fmt::Debug for AuditListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HearAudit")
    }
}
