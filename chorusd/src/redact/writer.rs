//! Secrets in what is written somewhere.

use std::io::{self, Write};
use std::sync::Arc;

use super::flow::Flow;
use super::redactor::Redactor;

/// Passes on what is written to it, without secrets; also one that comes in two pieces. What may become one is held back, so
/// [`RedactedWriter::finish`] it at the end; dropping does so without telling of faults.
#[derive(Debug)]
pub struct RedactedWriter<W: Write> {
    flow: Flow,
    to: W,
    buffer: Vec<u8>,
}

impl<W: Write> RedactedWriter<W> {
    pub fn new(redactor: &Arc<Redactor>, to: W) -> Self {
        Self { flow: redactor.flow(), to, buffer: Vec::new() }
    }

    /// Writes what was held back.
    ///
    /// # Errors
    /// What the writer below says.
    pub fn finish(&mut self) -> io::Result<()> {
        self.flow.end_bytes(false, &mut self.buffer);
        self.pass_on()?;
        self.to.flush()
    }

    fn pass_on(&mut self) -> io::Result<()> {
        let written = self.to.write_all(&self.buffer);
        self.buffer.clear();
        written
    }
}

impl<W: Write> Write for RedactedWriter<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.flow.push_bytes(piece, &mut self.buffer);
        self.pass_on()?;
        Ok(piece.len())
    }

    /// What is held back stays held back.
    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl<W: Write> Drop for RedactedWriter<W> {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
