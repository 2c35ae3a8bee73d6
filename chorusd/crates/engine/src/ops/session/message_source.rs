//! The messages of a session that is read: from its file, or from the live context.

use std::sync::Arc;

use chorus_base::error::Result;
use chorus_session::stored_message::StoredMessage;
use chorus_store::index_cache::{IndexedFile, MessageReader};

use super::get::corrupt_error;

/// The messages of a session, readable from any position.
#[derive(Debug)]
pub enum MessageSource {
    File {
        /// The name of the session, for errors.
        name: String,
        file: IndexedFile,
    },
    /// The messages of a live context at one moment.
    Live(Arc<Vec<StoredMessage>>),
}

impl MessageSource {
    /// Returns the number of messages.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Self::File { file, .. } => file.index.header.message_count,
            Self::Live(messages) => messages.len() as u64,
        }
    }

    /// Returns a reader of the messages from index `number` on, counted from 0.
    #[must_use]
    pub fn messages_from(&self, number: u64) -> SourceReader<'_> {
        match self {
            Self::File { name, file } => SourceReader::File(name, file.messages_from(number)),
            Self::Live(messages) => {
                let first = usize::try_from(number).unwrap_or(usize::MAX).min(messages.len());
                SourceReader::Live(messages[first..].iter())
            }
        }
    }
}

/// Reads messages in order.
#[derive(Debug)]
pub enum SourceReader<'a> {
    File(&'a str, MessageReader),
    Live(std::slice::Iter<'a, StoredMessage>),
}

impl SourceReader<'_> {
    /// Returns the next message, `None` after the last one. Blocks.
    ///
    /// # Errors
    /// `corrupt_session` if the file has changed since it was indexed; an I/O error.
    pub fn read(&mut self) -> Result<Option<StoredMessage>> {
        match self {
            Self::File(name, messages) => messages.read()?.map_err(|error| corrupt_error(name, &error)),
            Self::Live(messages) => Ok(messages.next().cloned()),
        }
    }
}
