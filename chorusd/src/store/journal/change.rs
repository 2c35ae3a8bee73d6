//! Changes of a live context that are no messages.

use bytes::Bytes;
use jiff::Timestamp;

use super::{NewHead, Record};
use crate::message::{ContextNo, Totals};

/// A change of a live context that is no message.
#[derive(Debug)]
pub struct Change {
    pub context: ContextNo,
    pub begin: NewHead,
    /// Number of the record.
    pub number: u32,
    pub record: ChangeRecord,
    pub totals: Totals,
    pub saved: u64,
    pub deadline: Option<Timestamp>,
}

/// The record of a [`Change`].
#[derive(Debug, Clone)]
pub enum ChangeRecord {
    WorkingSet(Bytes),
    Rewind { keep: u64, saved: u64 },
    Unrewind,
    Uncompact,
}

impl ChangeRecord {
    pub(super) fn borrow(&self) -> Record<'_> {
        match self {
            Self::WorkingSet(json) => Record::WorkingSet { json },
            Self::Rewind { keep, saved } => Record::Rewind { keep: *keep, saved: *saved },
            Self::Unrewind => Record::Unrewind,
            Self::Uncompact => Record::Uncompact,
        }
    }
}
