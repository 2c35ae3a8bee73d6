//! Messages of a session that is being imported, in an unnamed temporary file, for sources that do not fit into memory.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek as _, Write as _};
use std::path::Path;

use chorus_session::message_lines::MessageLines;
use chorus_session::{MessageHash, file};

/// Buffer size of reads and writes, in bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// Collects messages in the layout of a session file.
#[derive(Debug)]
pub struct MessageSpool {
    out: BufWriter<File>,
    hash: MessageHash,
    count: u64,
}

impl MessageSpool {
    /// Creates an empty spool with an unnamed file in `dir`.
    pub fn new(dir: &Path) -> io::Result<Self> {
        let out = BufWriter::with_capacity(BUFFER_BYTES, tempfile::tempfile_in(dir)?);
        Ok(Self { out, hash: MessageHash::default(), count: 0 })
    }

    /// Appends a message.
    pub fn append(&mut self, json: &[u8]) -> io::Result<()> {
        self.hash.add(json);
        file::write_message(&mut self.out, json, self.count == 0)?;
        self.count += 1;
        Ok(())
    }

    /// Completes the spool.
    pub fn finish(mut self) -> io::Result<SpooledMessages> {
        self.out.flush()?;
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(SpooledMessages { file, sha256: self.hash.finish(), count: self.count })
    }
}

/// Messages that were collected, which can be read several times, one reader at a time.
#[derive(Debug)]
pub struct SpooledMessages {
    file: File,
    /// [`MessageHash`] of the messages.
    pub sha256: String,
    pub count: u64,
}

impl SpooledMessages {
    /// Returns the bytes as they are in a session file, from the start.
    pub fn reader(&self) -> io::Result<BufReader<File>> {
        let mut file = self.file.try_clone()?;
        file.rewind()?;
        Ok(BufReader::with_capacity(BUFFER_BYTES, file))
    }

    /// Reads the messages from the start.
    pub fn lines(&self) -> io::Result<MessageLines<BufReader<File>>> {
        Ok(MessageLines::new(self.reader()?))
    }
}
