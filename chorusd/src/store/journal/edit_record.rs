//! Changes of a live context that are no messages.

use bytes::Bytes;
use jiff::Timestamp;

use super::{NewContextRow, Record};
use crate::message::{ContextNo, Totals};

/// A change of a live context that is no message.
#[derive(Debug)]
pub struct JournalEdit {
    pub context: ContextNo,
    pub begin: NewContextRow,
    /// Number of the record.
    pub number: u32,
    pub record: EditRecord,
    pub totals: Totals,
    pub saved: u64,
    pub deadline: Option<Timestamp>,
}

/// The record of a [`Change`].
#[derive(Debug, Clone)]
pub enum EditRecord {
    WorkingSet(Bytes),
    Rewind { keep: u64, saved: u64 },
    Unrewind,
    Uncompact,
}

impl EditRecord {
    pub(super) fn as_record(&self) -> Record<'_> {
        match self {
            Self::WorkingSet(json) => Record::WorkingSet { json },
            Self::Rewind { keep, saved } => Record::Rewind { keep: *keep, saved: *saved },
            Self::Unrewind => Record::Unrewind,
            Self::Uncompact => Record::Uncompact,
        }
    }
}
