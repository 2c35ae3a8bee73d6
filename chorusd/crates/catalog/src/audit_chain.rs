//! The hash chain of the audit log. docs/PERMISSIONS.md specifies it for other programs.

use chorus_base::error::{Error, Result};
use chorus_base::hex;
use chorus_journal::to_nanos;
use chorus_proto::ErrorKind;
use sha2::{Digest as _, Sha256};

use crate::{AuditDecision, AuditEntry};

/// Hint of the error after which nothing can be appended to an audit log, because its newest row was changed.
pub const CHANGED_AUDIT_HINT: &str = "run `chorusctl audit verify`; until the catalog is restored from a backup, all \
                                      actions are denied because they cannot be recorded";

/// Number and hash of a row of an audit log, by default of the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditHead {
    pub id: i64,
    pub hash: [u8; 32],
}

impl AuditHead {
    /// The head of an empty log.
    pub const NONE: Self = Self { id: 0, hash: [0; 32] };

    /// Makes the head from a row of the table.
    ///
    /// # Errors
    /// Fails if the hash does not have 32 bytes: nothing can be chained to such a row.
    pub fn from_row(id: i64, hash: Vec<u8>) -> Result<Self> {
        let hash = hash.try_into().map_err(|hash: Vec<u8>| invalid_hash_error(id, hash.len()))?;
        Ok(Self { id, hash })
    }

    /// Returns the head of the log once `row` is appended after this row.
    #[must_use]
    pub fn next(&self, row: &AuditDecision) -> Self {
        let id = self.id + 1;
        Self { id, hash: row_hash(&self.hash, id, row) }
    }

    /// The hash in hex.
    #[must_use]
    pub fn hex(&self) -> String {
        hex(&self.hash)
    }
}

fn invalid_hash_error(id: i64, length: usize) -> Error {
    let what = format!("entry {id} of the audit log was changed: its hash has {length} bytes, not 32");
    Error::new(ErrorKind::StorageFailed, what).hint(CHANGED_AUDIT_HINT)
}

/// SHA-256 of the previous hash and of every field in the order of the table: numbers as 8 bytes, texts and ids as
/// their length in 8 bytes followed by their bytes, optional fields after a byte that says if they are present.
/// Numbers are big-endian.
fn row_hash(before: &[u8; 32], id: i64, row: &AuditDecision) -> [u8; 32] {
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
    /// A row that the log must contain.
    known: Option<AuditHead>,
}

impl ChainVerifier {
    /// Verifies all rows, and that `known` is one of them.
    #[must_use]
    pub fn new(known: Option<AuditHead>) -> Self {
        Self { rows: 0, head: AuditHead::NONE, broken: None, known }
    }

    /// Verifies the rows after `head`.
    #[must_use]
    pub fn starting_after(head: AuditHead) -> Self {
        Self { head, ..Self::new(None) }
    }

    /// Returns true if all rows so far fit the chain.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.broken.is_none()
    }

    /// Verifies the next row.
    pub fn check_row(&mut self, entry: &AuditEntry) {
        let due = self.head.id + 1;
        let next = AuditHead { id: entry.id, hash: row_hash(&self.head.hash, entry.id, &entry.row) };
        let wrong = if entry.id != due {
            Some(format!("entry {due} before it is missing"))
        } else if entry.hash != next.hash {
            Some("its hash does not match its content and the previous entry".to_owned())
        } else if self.known.is_some_and(|known| known.id == next.id && known.hash != next.hash) {
            Some("it is not the original entry: the log was rewritten from here or earlier".to_owned())
        } else {
            None
        };
        if let Some(wrong) = wrong {
            self.broken = Some((Some(entry.id), wrong));
            return;
        }
        self.rows += 1;
        self.head = next;
    }

    /// Reports a missing end of the log, after all of its rows.
    #[must_use]
    pub fn finish(mut self) -> Self {
        if let Some(known) = self.known.filter(|known| self.broken.is_none() && known.id > self.head.id) {
            let (first, last) = (self.head.id + 1, known.id);
            self.broken = Some((None, format!("entries {first} to {last} are missing at the end")));
        }
        self
    }
}
