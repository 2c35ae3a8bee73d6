//! The second pass: reads single lines by their offset, mostly in the order of the file.

use std::io::{self, BufRead, Read, Seek, SeekFrom};

use super::line_reader::{MAX_LINE_BYTES, strip_line_end};

/// Gaps up to this size are read through, since a seek would discard the buffer.
const MAX_READ_THROUGH_GAP: u64 = 64 << 10;

/// Reads single lines of the source.
#[derive(Debug)]
pub(super) struct LineSeeker<'s, S> {
    source: &'s mut S,
    position: u64,
    size: u64,
    buffer: Vec<u8>,
}

impl<'s, S: BufRead + Seek> LineSeeker<'s, S> {
    pub(super) fn new(source: &'s mut S) -> io::Result<Self> {
        let size = source.seek(SeekFrom::End(0))?;
        Ok(Self { source, position: size, size, buffer: Vec::new() })
    }

    /// Returns the progress in bytes. The first pass counts as half of the source.
    pub(super) fn progress(&self) -> u64 {
        self.size / 2 + self.position / 2
    }

    /// Reads the line that starts at `offset`.
    pub(super) fn read_line_at(&mut self, offset: u64) -> io::Result<&[u8]> {
        match offset.checked_sub(self.position) {
            Some(gap) if gap <= MAX_READ_THROUGH_GAP => {
                io::copy(&mut self.source.by_ref().take(gap), &mut io::sink()).map(drop)?
            }
            _ => self.source.seek(SeekFrom::Start(offset)).map(drop)?,
        }
        self.buffer.clear();
        self.buffer.shrink_to(1 << 20);
        let read = self.source.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut self.buffer)?;
        self.position = offset + read as u64;
        Ok(strip_line_end(&self.buffer, offset))
    }
}
