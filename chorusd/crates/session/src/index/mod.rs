//! Index of the byte offsets of messages in a session file, so that a page of messages is read without those before it.
//! The index is sparse: one entry covers up to 64 messages.

mod build;
mod reader;

use chorus_proto::SessionHeader;

use super::message_defaults::MessageDefaults;
pub use build::build;
pub use reader::SessionReader;

/// Largest number of messages between two entries.
const MAX_MESSAGES_PER_ENTRY: u64 = 64;

/// Largest number of bytes between two entries, unless a single message is larger.
const MAX_BYTES_PER_ENTRY: u64 = 256 << 10;

/// The header and the message offsets of a session file, collected in one pass over it.
#[derive(Debug)]
pub struct SessionIndex {
    pub header: SessionHeader,
    /// The [`super::MessageHash`] of the messages.
    pub sha256: String,
    layout: Layout,
    offsets: Offsets,
    /// Offset of the end of the last message.
    end: u64,
}

#[derive(Debug, Clone, Copy)]
enum Layout {
    /// The layout that Chorus writes: one message on each line.
    Native,
    Any(MessageDefaults),
}

/// The number of a message, counted from 0, and its byte offset in the file (in the native layout, that of its line).
#[derive(Debug, Clone, Copy)]
struct OffsetEntry {
    number: u64,
    offset: u64,
}

/// Entries in the order of the file. The first one is for the first message.
#[derive(Debug, Default)]
struct Offsets(Vec<OffsetEntry>);

impl Offsets {
    /// Records the offset of the next message if an entry is due.
    fn add(&mut self, number: u64, at: u64) {
        let due = |last: &OffsetEntry| {
            number - last.number >= MAX_MESSAGES_PER_ENTRY || at - last.offset >= MAX_BYTES_PER_ENTRY
        };
        if self.0.last().is_none_or(due) {
            self.0.push(OffsetEntry { number, offset: at });
        }
    }

    /// Returns the position of the last entry that is not after message `number`.
    fn find_at_or_before(&self, number: u64) -> usize {
        self.0.partition_point(|mark| mark.number <= number).saturating_sub(1)
    }
}

impl SessionIndex {
    /// Estimated resident memory in bytes.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        let header = serde_json::to_vec(&self.header).map_or(0, |json| json.len());
        size_of::<Self>() + header + self.offsets.0.len() * size_of::<OffsetEntry>()
    }
}

#[cfg(test)]
mod tests;
