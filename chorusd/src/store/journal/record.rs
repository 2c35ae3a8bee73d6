//! A record's bytes: a version byte and a `bincode` envelope.
//!
//! The message travels inside as JSON bytes: it is kept as it came, and bincode cannot decode self-describing values.

use bincode::config::{Configuration, standard};
use bincode::{BorrowDecode, Encode};
use chorus_proto::ErrorKind;

use crate::failure::{Failure, Result};

/// First byte of every record.
const VERSION: u8 = 1;

/// One entry of a context's journal. Variants are appended, never moved: their order is part of the format.
#[derive(Debug, PartialEq, Eq, Encode, BorrowDecode)]
pub enum Record<'a> {
    /// One message, serialised.
    Message { json: &'a [u8] },
    /// The first `messages` messages of the session `id`, in place of a copy of them.
    Session { id: [u8; 16], messages: u64 },
    /// The working set from here on, serialised.
    WorkingSet { json: &'a [u8] },
    /// Only the first `keep` messages are in the context from here on; a session held `saved` before.
    Rewind { keep: u64, saved: u64 },
    /// The last rewind is taken back.
    Unrewind,
    /// Older messages left the window, serialised.
    Compact { json: &'a [u8] },
    /// The last compaction is taken back.
    Uncompact,
    /// What it cost to resume, in tokens.
    Restoration { input: u64, output: u64 },
}

const CONFIG: Configuration = standard();

impl<'a> Record<'a> {
    /// The envelope.
    ///
    /// # Errors
    /// Never for these shapes; bincode's signature asks.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![VERSION];
        bincode::encode_into_std_write(self, &mut bytes, CONFIG).map_err(|e| Failure::internal(e.to_string()))?;
        Ok(bytes)
    }

    /// Reads an envelope.
    ///
    /// # Errors
    /// A version that is not known, or bytes that are no record.
    pub fn decode(envelope: &'a [u8]) -> Result<Self> {
        match envelope.split_first() {
            Some((&VERSION, body)) => match bincode::borrow_decode_from_slice(body, CONFIG) {
                Ok((record, used)) if used == body.len() => Ok(record),
                Ok(_) => Err(unreadable("bytes after the record")),
                Err(e) => Err(unreadable(e)),
            },
            Some((version, _)) => Err(unreadable(format_args!("version {version} is not known"))),
            None => Err(unreadable("it is empty")),
        }
    }
}

/// A record that cannot be read.
pub fn unreadable(reason: impl std::fmt::Display) -> Failure {
    Failure::new(ErrorKind::StorageFailed, format!("a record of the journal cannot be read: {reason}"))
        .hint("keep a copy of db/live.db before anything else; saved sessions are not affected")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes as version 1 wrote them: they must load for ever.
    #[test]
    fn old_bytes_load() {
        let message = [1, 0, 2, b'{', b'}'];
        assert_eq!(Record::decode(&message).unwrap(), Record::Message { json: b"{}" });
        let mut session = vec![1, 1];
        session.extend_from_slice(&[7; 16]);
        session.push(42);
        assert_eq!(Record::decode(&session).unwrap(), Record::Session { id: [7; 16], messages: 42 });
        assert_eq!(Record::decode(&[1, 2, 2, b'{', b'}']).unwrap(), Record::WorkingSet { json: b"{}" });
        assert_eq!(Record::decode(&[1, 3, 9, 12]).unwrap(), Record::Rewind { keep: 9, saved: 12 });
        assert_eq!(Record::decode(&[1, 4]).unwrap(), Record::Unrewind);
        assert_eq!(Record::decode(&[1, 5, 2, b'{', b'}']).unwrap(), Record::Compact { json: b"{}" });
        assert_eq!(Record::decode(&[1, 6]).unwrap(), Record::Uncompact);
        assert_eq!(Record::decode(&[1, 7, 9, 12]).unwrap(), Record::Restoration { input: 9, output: 12 });
        assert_eq!(Record::Message { json: b"{}" }.encode().unwrap(), message);
        assert_eq!(Record::Session { id: [7; 16], messages: 42 }.encode().unwrap(), session);
    }

    #[test]
    fn damage_is_an_error() {
        for bytes in [&[][..], &[9, 0, 0], &[1], &[1, 77], &[1, 0, 9, 1], &[1, 0, 0, 0]] {
            assert!(Record::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
