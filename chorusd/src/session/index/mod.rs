//! Where the messages of a session file stand, so that a page of them is read without what is before it.

mod build;
mod reader;

use chorus_proto::SessionHeader;

pub use build::build;
pub use reader::Reader;

use super::file::Filling;

/// Messages from one mark to the next, at most.
const MESSAGES: u64 = 64;

/// Bytes from one mark to the next, unless one message alone has more.
const BYTES: u64 = 256 << 10;

/// A file that was read once, from its beginning to its end.
#[derive(Debug)]
pub struct Index {
    pub header: SessionHeader,
    /// The [`super::MessageHash`] of its messages.
    pub sha256: String,
    layout: Layout,
    marks: Marks,
    /// The end of the last message.
    end: u64,
}

#[derive(Debug, Clone, Copy)]
enum Layout {
    /// Ours: a message on each line.
    Lines,
    Any(Filling),
}

/// A message, by its number from 0, and where in the file it begins (in our layout, its line).
#[derive(Debug, Clone, Copy)]
struct Mark {
    number: u64,
    at: u64,
}

/// Marks in the order of the file; the first one is of the first message.
#[derive(Debug, Default)]
struct Marks(Vec<Mark>);

impl Marks {
    /// Takes note of where the next message begins.
    fn add(&mut self, number: u64, at: u64) {
        let due = |last: &Mark| number - last.number >= MESSAGES || at - last.at >= BYTES;
        if self.0.last().is_none_or(due) {
            self.0.push(Mark { number, at });
        }
    }

    /// The place among the marks of the last one that is not behind message `number`.
    fn before(&self, number: u64) -> usize {
        self.0.partition_point(|mark| mark.number <= number).saturating_sub(1)
    }
}

impl Index {
    /// Bytes of memory that it takes, about.
    #[must_use]
    pub fn size(&self) -> usize {
        let header = serde_json::to_vec(&self.header).map_or(0, |json| json.len());
        size_of::<Self>() + header + self.marks.0.len() * size_of::<Mark>()
    }
}

#[cfg(test)]
mod tests;
