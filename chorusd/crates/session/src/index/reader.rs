//! Reads messages of an indexed session file, starting at any message.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{Layout, SessionIndex};
use crate::stored_message::StoredMessage;
use crate::{FormatError, SessionInput};

/// Reads messages one by one. Buffers the messages between two entries of the index at a time.
#[derive(Debug)]
pub struct SessionReader {
    file: Arc<SessionInput>,
    index: Arc<SessionIndex>,
    /// The index entry that is read next.
    next_entry: usize,
    /// The number of the next message, from 0.
    number: u64,
    /// Messages from `number` on that were read from the file.
    buffered: VecDeque<Bytes>,
}

impl SessionReader {
    /// Creates a reader that begins at message `number`. `index` must be that of `file`.
    #[must_use]
    pub fn new(file: Arc<SessionInput>, index: Arc<SessionIndex>, number: u64) -> Self {
        let next_entry = index.offsets.find_at_or_before(number);
        Self { file, index, next_entry, number, buffered: VecDeque::new() }
    }

    /// Returns the next message, or `None` after the last one.
    ///
    /// # Errors
    /// The outer error is one of the disk. The inner one means that the file changed since it was indexed.
    pub fn read(&mut self) -> io::Result<Result<Option<StoredMessage>, FormatError>> {
        if self.number >= self.index.header.message_count {
            return Ok(Ok(None));
        }
        if self.buffered.is_empty()
            && let Err(error) = self.read_chunk()?
        {
            return Ok(Err(error));
        }
        let Some(json) = self.buffered.pop_front() else { return Ok(Err(changed_error())) };
        let message = match self.index.layout {
            Layout::Native => StoredMessage::parse(json)
                .map_err(|e| FormatError::Message { number: self.number + 1, reason: e.to_string() }),
            Layout::Any(filling) => filling.parse_message(json, self.number),
        };
        self.number += 1;
        Ok(message.map(Some))
    }

    /// Reads the messages up to the next index entry into the buffer.
    fn read_chunk(&mut self) -> io::Result<Result<(), FormatError>> {
        let marks = &self.index.offsets.0;
        let Some(mark) = marks.get(self.next_entry).copied() else { return Ok(Err(changed_error())) };
        let end = marks.get(self.next_entry + 1).map_or(self.index.end, |next| next.offset);
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(mark.offset)).unwrap_or(usize::MAX)];
        if let Err(error) = self.file.read_exact_at(&mut bytes, mark.offset) {
            return FormatError::of_damage(&error).map(Err).ok_or(error);
        }
        let bytes = Bytes::from(bytes);
        let found = match self.index.layout {
            Layout::Native => split_lines(&bytes),
            Layout::Any(_) => split_values(&bytes),
        };
        let Some(mut found) = found else { return Ok(Err(changed_error())) };
        let passed = usize::try_from(self.number - mark.number).unwrap_or(usize::MAX);
        found.drain(..passed.min(found.len()));
        self.buffered = found;
        self.next_entry += 1;
        Ok(Ok(()))
    }
}

fn changed_error() -> FormatError {
    FormatError::Json("it changed while being read".into())
}

fn split_lines(bytes: &Bytes) -> Option<VecDeque<Bytes>> {
    let lines = bytes.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
    let json = |line: &[u8]| {
        let json = line.strip_prefix(b"    ")?;
        Some(bytes.slice_ref(json.strip_suffix(b",").unwrap_or(json)))
    };
    lines.map(json).collect()
}

/// Splits JSON values that commas separate.
fn split_values(bytes: &Bytes) -> Option<VecDeque<Bytes>> {
    let (mut found, mut rest) = (VecDeque::new(), &bytes[..]);
    loop {
        rest = rest.trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        if rest.is_empty() {
            return Some(found);
        }
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<&RawValue>();
        let value = values.next()?.ok()?.get().as_bytes();
        rest = &rest[values.byte_offset()..];
        found.push_back(bytes.slice_ref(value));
    }
}
