//! Edits of a live context: changes that are not messages, such as pins, rewinds and undone compactions.

use bytes::Bytes;
use chorus_session::stored_message::{ContextNo, Totals};
use jiff::Timestamp;

use crate::{NewContextRow, Record};

/// An edit of a live context.
#[derive(Debug, Clone)]
pub struct JournalEdit {
    pub context: ContextNo,
    pub begin: NewContextRow,
    /// Number of the record in its context.
    pub number: u32,
    pub record: EditRecord,
    pub totals: Totals,
    pub saved: u64,
    pub deadline: Option<Timestamp>,
}

/// The record of a [`JournalEdit`].
#[derive(Debug, Clone)]
pub enum EditRecord {
    WorkingSet(Bytes),
    /// JSON of the changes.
    Notes(Bytes),
    Rewind {
        keep: u64,
        saved: u64,
    },
    Unrewind,
    Uncompact,
}

impl EditRecord {
    /// Returns the record to encode.
    #[must_use]
    pub fn as_record(&self) -> Record<'_> {
        match self {
            Self::WorkingSet(json) => Record::WorkingSet { json },
            Self::Notes(json) => Record::Notes { json },
            Self::Rewind { keep, saved } => Record::Rewind { keep: *keep, saved: *saved },
            Self::Unrewind => Record::Unrewind,
            Self::Uncompact => Record::Uncompact,
        }
    }
}
