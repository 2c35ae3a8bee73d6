//! Format of a record: a version byte, a checksum and a `bincode` envelope.
//!
//! The envelope contains a message as JSON bytes, because messages are stored unchanged and bincode cannot decode
//! self-describing values. The checksum covers the envelope, the context that the record belongs to and the position in
//! it, so that reading a damaged row fails.

use bincode::config::{Configuration, standard};
use bincode::{BorrowDecode, Encode};
use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_session::stored_message::ContextNo;

use crate::crc32;

/// First byte of every new record: version 2 has a checksum and names its context.
const VERSION: u8 = 2;
/// First byte of records of earlier releases, which have neither.
const VERSION_WITHOUT_CHECKSUM: u8 = 1;

/// Position of a record in its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordPosition {
    /// Row id of the previous record in the context.
    pub before: Option<i64>,
    /// Number of the record in the context.
    pub number: u32,
}

impl RecordPosition {
    fn checksum(self, body: &[u8]) -> u32 {
        let before = self.before.unwrap_or(0).to_le_bytes();
        crc32(crc32(crc32(0, &before), &self.number.to_le_bytes()), body)
    }
}

/// One entry of a context's journal. New variants are added at the end, because their order is part of the format.
#[derive(Debug, PartialEq, Eq, Encode, BorrowDecode)]
pub enum Record<'a> {
    /// One message as JSON.
    Message { json: &'a [u8] },
    /// Stands for the first `messages` messages of the session `id`.
    Session { id: [u8; 16], messages: u64 },
    /// The working set from here on, as JSON.
    WorkingSet { json: &'a [u8] },
    /// From here on only the first `keep` messages are in the context; a session held `saved` of them before.
    Rewind { keep: u64, saved: u64 },
    /// Undoes the last rewind.
    Unrewind,
    /// A compaction as JSON: older messages left the window.
    Compact { json: &'a [u8] },
    /// Undoes the last compaction.
    Uncompact,
    /// Cost of resuming, in tokens.
    Restoration { input: u64, output: u64 },
    /// Edits of the notes as JSON.
    Notes { json: &'a [u8] },
    /// The context continues a conversation that was compacted by hand; JSON about that.
    Compacted { json: &'a [u8] },
}

const BINCODE_CONFIG: Configuration = standard();

impl<'a> Record<'a> {
    /// Encodes a record of `context` at `place`.
    pub fn encode(&self, context: ContextNo, place: RecordPosition) -> Result<Vec<u8>> {
        let mut bytes = vec![VERSION, 0, 0, 0, 0];
        bincode::encode_into_std_write((context.0, self), &mut bytes, BINCODE_CONFIG)
            .map_err(|e| Error::internal(e.to_string()))?;
        let sum = place.checksum(&bytes[5..]);
        bytes[1..5].copy_from_slice(&sum.to_le_bytes());
        Ok(bytes)
    }

    /// Decodes the record at `place` and the context that it names; records of earlier releases name none.
    ///
    /// # Errors
    /// Fails on an unknown version, a wrong checksum, or bytes that are not a record.
    pub fn decode(envelope: &'a [u8], place: RecordPosition) -> Result<(Option<ContextNo>, Self)> {
        match envelope.split_first() {
            Some((&VERSION, rest)) => {
                let (sum, body) = rest.split_at_checked(4).ok_or_else(|| unreadable_record("truncated"))?;
                if *sum != place.checksum(body).to_le_bytes() {
                    return Err(unreadable_record("checksum mismatch"));
                }
                let (context, record) = decode_exact::<(i64, Self)>(body)?;
                Ok((Some(ContextNo(context)), record))
            }
            Some((&VERSION_WITHOUT_CHECKSUM, body)) => Ok((None, decode_exact(body)?)),
            Some((version, _)) => Err(unreadable_record(format_args!("unknown version {version}"))),
            None => Err(unreadable_record("the message is empty")),
        }
    }
}

fn decode_exact<'a, T: BorrowDecode<'a, ()>>(body: &'a [u8]) -> Result<T> {
    match bincode::borrow_decode_from_slice(body, BINCODE_CONFIG) {
        Ok((value, used)) if used == body.len() => Ok(value),
        Ok(_) => Err(unreadable_record("extra bytes after the record")),
        Err(e) => Err(unreadable_record(e)),
    }
}

/// Error for a record that cannot be read.
pub fn unreadable_record(reason: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::StorageFailed, format!("cannot read a record of the journal: {reason}"))
        .hint("save all readable messages as sessions: chorusctl doctor --salvage")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: RecordPosition = RecordPosition { before: Some(7), number: 3 };

    fn bare(bytes: &[u8]) -> Record<'_> {
        let (context, record) = Record::decode(bytes, PLACE).unwrap();
        assert_eq!(context, None);
        record
    }

    /// Version 1 must stay readable for ever.
    #[test]
    fn old_bytes_load() {
        assert_eq!(bare(&[1, 0, 2, b'{', b'}']), Record::Message { json: b"{}" });
        let mut session = vec![1, 1];
        session.extend_from_slice(&[7; 16]);
        session.push(42);
        assert_eq!(bare(&session), Record::Session { id: [7; 16], messages: 42 });
        assert_eq!(bare(&[1, 2, 2, b'{', b'}']), Record::WorkingSet { json: b"{}" });
        assert_eq!(bare(&[1, 3, 9, 12]), Record::Rewind { keep: 9, saved: 12 });
        assert_eq!(bare(&[1, 4]), Record::Unrewind);
        assert_eq!(bare(&[1, 5, 2, b'{', b'}']), Record::Compact { json: b"{}" });
        assert_eq!(bare(&[1, 6]), Record::Uncompact);
        assert_eq!(bare(&[1, 7, 9, 12]), Record::Restoration { input: 9, output: 12 });
        assert_eq!(bare(&[1, 8, 2, b'[', b']']), Record::Notes { json: b"[]" });
        assert_eq!(bare(&[1, 9, 2, b'{', b'}']), Record::Compacted { json: b"{}" });
    }

    /// The same for version 2.
    #[test]
    fn bytes_with_a_checksum_load_where_they_were_written() {
        let message = Record::Message { json: b"{}" };
        let bytes = [2, 0x40, 0xd0, 0xbb, 0x7b, 10, 0, 2, b'{', b'}'];
        assert_eq!(message.encode(ContextNo(5), PLACE).unwrap(), bytes);
        assert_eq!(Record::decode(&bytes, PLACE).unwrap(), (Some(ContextNo(5)), message));
        for place in [
            RecordPosition { before: None, ..PLACE },
            RecordPosition { before: Some(6), ..PLACE },
            RecordPosition { number: 2, ..PLACE },
        ] {
            assert!(Record::decode(&bytes, place).is_err(), "{place:?}");
        }
    }

    #[test]
    fn every_flipped_bit_is_an_error() {
        let bytes = Record::Message { json: br#"{"content":"hello"}"# }.encode(ContextNo(300), PLACE).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Record::decode(&flipped, PLACE).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn damage_is_an_error() {
        for bytes in [&[][..], &[9, 0, 0], &[1], &[1, 77], &[1, 0, 9, 1], &[1, 0, 0, 0], &[2], &[2, 0, 0, 0, 0]] {
            assert!(Record::decode(bytes, PLACE).is_err(), "{bytes:?}");
        }
    }
}
