//! The messages of a session that is read: from its file, from its body elsewhere, or from the live context.

use std::collections::VecDeque;
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::BodyRow;
use chorus_session::stored_message::StoredMessage;
use chorus_store::SharedBodies;
use chorus_store::index_cache::{IndexedFile, MessageReader};
use tokio::runtime::Handle;

use super::get::corrupt_error;

/// The messages of a session, readable from any position.
#[derive(Debug)]
pub enum MessageSource {
    File {
        /// The name of the session, for errors.
        name: String,
        file: IndexedFile,
    },
    /// The messages of a session that is not on this machine.
    Shared(SharedMessages),
    /// The messages of a live context at one moment.
    Live(Arc<Vec<StoredMessage>>),
}

/// A body that is read in parts.
#[derive(Debug, Clone)]
pub struct SharedMessages {
    pub bodies: Arc<dyn SharedBodies>,
    pub body: BodyRow,
}

/// Messages of the first part that is read of a body.
const FIRST_PART: u64 = 64;

/// Messages of the largest part.
const LARGEST_PART: u64 = 1024;

impl MessageSource {
    /// Returns the number of messages.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Self::File { file, .. } => file.index.header.message_count,
            Self::Shared(shared) => shared.body.messages,
            Self::Live(messages) => messages.len() as u64,
        }
    }

    /// Returns a reader of the messages from index `number` on, counted from 0.
    #[must_use]
    pub fn messages_from(&self, number: u64) -> SourceReader<'_> {
        match self {
            Self::File { name, file } => SourceReader::File(name, file.messages_from(number)),
            Self::Shared(shared) => SourceReader::Shared(Box::new(PartReader {
                shared: shared.clone(),
                next: number,
                part: FIRST_PART,
                read: VecDeque::new(),
            })),
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
    Shared(Box<PartReader>),
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
            Self::Shared(parts) => parts.read(),
            Self::Live(messages) => Ok(messages.next().cloned()),
        }
    }
}

/// Reads a body in parts, which grow.
#[derive(Debug)]
pub struct PartReader {
    shared: SharedMessages,
    /// Number of the first message that was not fetched yet.
    next: u64,
    part: u64,
    read: VecDeque<StoredMessage>,
}

impl PartReader {
    /// Returns the next message. Blocks, outside of the runtime's own threads.
    fn read(&mut self) -> Result<Option<StoredMessage>> {
        let SharedMessages { bodies, body } = &self.shared;
        if self.read.is_empty() && self.next < body.messages {
            let page = bodies.page(body.clone(), self.next, self.part);
            self.read = Handle::current().block_on(page)?.into();
            self.next += self.read.len() as u64;
            self.part = (self.part * 2).min(LARGEST_PART);
        }
        Ok(self.read.pop_front())
    }
}
