//! Counts the bytes of the text before the block of data.

use std::io::{self, Write};

/// Passes everything on and counts it.
pub(super) struct CountingWriter<'a, W> {
    out: &'a mut W,
    written: u64,
}

impl<'a, W: Write> CountingWriter<'a, W> {
    pub(super) fn new(out: &'a mut W) -> Self {
        Self { out, written: 0 }
    }

    /// Returns the number of bytes that were written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }
}

impl<W: Write> Write for CountingWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
