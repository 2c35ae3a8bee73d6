//! Records as they are read back.

use bytes::Bytes;
use chorus_base::error::Result;
use chorus_proto::WorkingSet;
use chorus_session::notes::NoteChange;
use chorus_session::stored_message::{ContextNo, StoredMessage};
use uuid::Uuid;

use crate::{Record, RecordPosition, unreadable_record};

/// A decoded record.
#[derive(Debug, Clone)]
pub enum DecodedRecord {
    Message(StoredMessage),
    /// Refers to the first messages of a session.
    Session {
        id: Uuid,
        messages: u64,
    },
    WorkingSet(Box<WorkingSet>),
    Rewind {
        keep: u64,
        saved: u64,
    },
    Unrewind,
    /// JSON of a compaction.
    Compact(Bytes),
    Uncompact,
    Restoration {
        input: u64,
        output: u64,
    },
    /// Edits of the notes.
    Notes(Vec<NoteChange>),
    /// The context began by a compaction by hand: JSON about that.
    Compacted(Bytes),
}

/// Records of a context in order, each with its number.
pub type NumberedRecords = Vec<(u32, DecodedRecord)>;

/// Position in the records of a context on the way from the newest back to the first. Only the journal that returned it
/// can tell what `next` and `after` mean.
#[derive(Debug, Clone, Copy)]
pub struct RecordCursor {
    /// The record to read next.
    pub next: i64,
    /// Number of the record that was read last.
    pub after: Option<u32>,
}

/// Decodes the record in `envelope`, and the context that it names. `to_bytes` makes the JSON that the decoded record
/// keeps from its part of `envelope`: by copying it, or by sharing its memory.
///
/// # Errors
/// Fails with a [`unreadable_record`] if it is damaged.
pub fn decode_record(
    envelope: &[u8],
    place: RecordPosition,
    to_bytes: impl Fn(&[u8]) -> Bytes,
) -> Result<(Option<ContextNo>, DecodedRecord)> {
    let (context, record) = Record::decode(envelope, place)?;
    let entry = match record {
        Record::Message { json } => {
            let message = StoredMessage::parse(to_bytes(json));
            DecodedRecord::Message(
                message.map_err(|e| unreadable_record(format_args!("message {}: {e}", place.number)))?,
            )
        }
        Record::Session { id, messages } => DecodedRecord::Session { id: Uuid::from_bytes(id), messages },
        Record::WorkingSet { json } => {
            let set = serde_json::from_slice::<WorkingSet>(json);
            DecodedRecord::WorkingSet(Box::new(set.map_err(|e| unreadable_record(format_args!("pins: {e}")))?))
        }
        Record::Rewind { keep, saved } => DecodedRecord::Rewind { keep, saved },
        Record::Unrewind => DecodedRecord::Unrewind,
        Record::Compact { json } => DecodedRecord::Compact(to_bytes(json)),
        Record::Uncompact => DecodedRecord::Uncompact,
        Record::Restoration { input, output } => DecodedRecord::Restoration { input, output },
        Record::Notes { json } => {
            let changes = serde_json::from_slice(json).map_err(|e| unreadable_record(format_args!("notes: {e}")))?;
            DecodedRecord::Notes(changes)
        }
        Record::Compacted { json } => DecodedRecord::Compacted(to_bytes(json)),
    };
    Ok((context, entry))
}
