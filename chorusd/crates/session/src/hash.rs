//! Hash over the messages of a session.

use sha2::{Digest as _, Sha256};

/// SHA-256 over the serialised form of each message, followed by a newline. It does not cover the header, so a summary,
/// tag or description that is added later leaves it unchanged.
#[derive(Debug, Clone, Default)]
pub struct MessageHash(Sha256);

impl MessageHash {
    /// Adds the next message.
    pub fn add(&mut self, json: &[u8]) {
        self.0.update(json);
        self.0.update(b"\n");
    }

    /// Adds messages that each end with a newline.
    pub(crate) fn add_lines(&mut self, lines: &[u8]) {
        self.0.update(lines);
    }

    /// Hashes all `messages` in order.
    pub fn from_messages<'a>(messages: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Self::default();
        messages.into_iter().for_each(|json| hash.add(json));
        hash
    }

    /// Returns the hash as 64 hex digits.
    #[must_use]
    pub fn finish(self) -> String {
        use std::fmt::Write as _;
        self.0.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}
