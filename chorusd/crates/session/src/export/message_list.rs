//! The messages of a session that is exported, readable from any position.

use std::io;

use crate::stored_message::StoredMessage;

/// Gives the messages of a session.
pub trait MessageList {
    /// Returns their number.
    fn count(&self) -> u64;

    /// Iterates over them from index `number` on, counted from 0.
    fn iter_from(&self, number: u64) -> Box<dyn Iterator<Item = io::Result<StoredMessage>> + '_>;

    /// Returns the last `count` messages.
    fn newest(&self, count: u64) -> io::Result<Vec<StoredMessage>> {
        self.iter_from(self.count().saturating_sub(count)).collect()
    }
}

impl MessageList for Vec<StoredMessage> {
    fn count(&self) -> u64 {
        self.len() as u64
    }

    fn iter_from(&self, number: u64) -> Box<dyn Iterator<Item = io::Result<StoredMessage>> + '_> {
        let first = usize::try_from(number).unwrap_or(usize::MAX).min(self.len());
        Box::new(self[first..].iter().cloned().map(Ok))
    }
}
