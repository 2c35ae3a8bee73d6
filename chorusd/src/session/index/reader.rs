//! The messages of a file that is known, from any of them on.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{Index, Layout};
use crate::message::Stored;
use crate::session::FormatError;

/// Messages one by one; what lies between two marks is in memory at a time.
#[derive(Debug)]
pub struct Reader {
    file: Arc<File>,
    index: Arc<Index>,
    /// The mark that is read next.
    mark: usize,
    /// The number of the next message, from 0.
    number: u64,
    /// What was read of the messages from `number` on.
    ahead: VecDeque<Bytes>,
}

impl Reader {
    /// From message `number` on; `index` must be of `file`.
    #[must_use]
    pub fn new(file: Arc<File>, index: Arc<Index>, number: u64) -> Self {
        let mark = index.marks.before(number);
        Self { file, index, mark, number, ahead: VecDeque::new() }
    }

    /// The next message, `None` behind the last one.
    ///
    /// # Errors
    /// What the disk says; within that, how the file became another one.
    pub fn read(&mut self) -> io::Result<Result<Option<Stored>, FormatError>> {
        if self.number >= self.index.header.message_count {
            return Ok(Ok(None));
        }
        if self.ahead.is_empty()
            && let Err(error) = self.go_on()?
        {
            return Ok(Err(error));
        }
        let Some(json) = self.ahead.pop_front() else { return Ok(Err(changed())) };
        let message = match self.index.layout {
            Layout::Lines => {
                Stored::parse(json).map_err(|e| FormatError::Message { number: self.number + 1, reason: e.to_string() })
            }
            Layout::Any(filling) => filling.message(json, self.number),
        };
        self.number += 1;
        Ok(message.map(Some))
    }

    /// Reads up to the next mark.
    fn go_on(&mut self) -> io::Result<Result<(), FormatError>> {
        let marks = &self.index.marks.0;
        let Some(mark) = marks.get(self.mark).copied() else { return Ok(Err(changed())) };
        let end = marks.get(self.mark + 1).map_or(self.index.end, |next| next.at);
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(mark.at)).unwrap_or(usize::MAX)];
        self.file.read_exact_at(&mut bytes, mark.at)?;
        let bytes = Bytes::from(bytes);
        let found = match self.index.layout {
            Layout::Lines => lines(&bytes),
            Layout::Any(_) => values(&bytes),
        };
        let Some(mut found) = found else { return Ok(Err(changed())) };
        let passed = usize::try_from(self.number - mark.number).unwrap_or(usize::MAX);
        found.drain(..passed.min(found.len()));
        self.ahead = found;
        self.mark += 1;
        Ok(Ok(()))
    }
}

fn changed() -> FormatError {
    FormatError::Json("it changed while it was read".into())
}

fn lines(bytes: &Bytes) -> Option<VecDeque<Bytes>> {
    let lines = bytes.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
    let json = |line: &[u8]| {
        let json = line.strip_prefix(b"    ")?;
        Some(bytes.slice_ref(json.strip_suffix(b",").unwrap_or(json)))
    };
    lines.map(json).collect()
}

/// Values of JSON with commas between them.
fn values(bytes: &Bytes) -> Option<VecDeque<Bytes>> {
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
