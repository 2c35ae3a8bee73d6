//! Where the messages of a session file stand, so that a page of them is read without what is before it.

mod build;
mod reader;

use chorus_proto::SessionHeader;

pub use build::build;
pub use reader::SessionReader;

use super::file::MessageDefaults;

/// Messages from one mark to the next, at most.
const MAX_MESSAGES_PER_ENTRY: u64 = 64;

/// Bytes from one mark to the next, unless one message alone has more.
const MAX_BYTES_PER_ENTRY: u64 = 256 << 10;

/// A file that was read once, from its beginning to its end.
#[derive(Debug)]
pub struct SessionIndex {
    pub header: SessionHeader,
    /// The [`super::MessageHash`] of its messages.
    pub sha256: String,
    layout: Layout,
    offsets: Offsets,
    /// The end of the last message.
    end: u64,
}

#[derive(Debug, Clone, Copy)]
enum Layout {
    /// Ours: a message on each line.
    Native,
    Any(MessageDefaults),
}

/// A message, by its number from 0, and where in the file it begins (in our layout, its line).
#[derive(Debug, Clone, Copy)]
struct OffsetEntry {
    number: u64,
    offset: u64,
}

/// Marks in the order of the file; the first one is of the first message.
#[derive(Debug, Default)]
struct Offsets(Vec<OffsetEntry>);

impl Offsets {
    /// Takes note of where the next message begins.
    fn add(&mut self, number: u64, at: u64) {
        let due = |last: &OffsetEntry| {
            number - last.number >= MAX_MESSAGES_PER_ENTRY || at - last.offset >= MAX_BYTES_PER_ENTRY
        };
        if self.0.last().is_none_or(due) {
            self.0.push(OffsetEntry { number, offset: at });
        }
    }

    /// The place among the marks of the last one that is not behind message `number`.
    fn find_at_or_before(&self, number: u64) -> usize {
        self.0.partition_point(|mark| mark.number <= number).saturating_sub(1)
    }
}

impl SessionIndex {
    /// Bytes of memory that it takes, about.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        let header = serde_json::to_vec(&self.header).map_or(0, |json| json.len());
        size_of::<Self>() + header + self.offsets.0.len() * size_of::<OffsetEntry>()
    }
}

#[cfg(test)]
mod tests;
