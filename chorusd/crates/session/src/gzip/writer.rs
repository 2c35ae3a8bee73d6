//! Writes gzip in members that can be read one by one.

use std::io::{self, Write};

use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use memchr::{memchr, memrchr};

use super::{HEADER_BYTES, MEMBER_BYTES, TRAILER_BYTES, hash_member, member_header};

/// The level of compression. Higher ones take twice the time for a hundredth less.
const LEVEL: u32 = 6;

/// Writes what it gets as gzip, in members of about 128 KiB that end at line ends. [`GzipWriter::finish`] writes the last one.
#[derive(Debug)]
pub struct GzipWriter<W> {
    out: W,
    /// Text that no member has yet.
    pending: Vec<u8>,
    /// The beginning of `pending` that has no line end at which a member could be cut.
    searched: usize,
    deflate: Compress,
    member: Vec<u8>,
}

impl<W: Write> GzipWriter<W> {
    pub fn new(out: W) -> Self {
        let deflate = Compress::new(Compression::new(LEVEL), false);
        Self { out, pending: Vec::new(), searched: 0, deflate, member: Vec::new() }
    }

    /// Ends the member here.
    ///
    /// # Errors
    /// An I/O error.
    pub fn cut(&mut self) -> io::Result<()> {
        self.write_member(self.pending.len())
    }

    /// Writes the last member and returns the writer below.
    ///
    /// # Errors
    /// An I/O error.
    pub fn finish(mut self) -> io::Result<W> {
        self.cut()?;
        Ok(self.out)
    }

    /// As [`GzipWriter::finish`], and records the [`MessageHash`](crate::MessageHash) of the messages in the text, so that who reads all members
    /// need not hash them again.
    ///
    /// # Errors
    /// An I/O error.
    pub fn finish_with_hash(self, sha256: &str) -> io::Result<W> {
        let mut out = self.finish()?;
        out.write_all(&hash_member(sha256))?;
        Ok(out)
    }

    /// Writes a member with the first `bytes` of the pending text.
    fn write_member(&mut self, bytes: usize) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let text = &self.pending[..bytes];
        self.member.clear();
        self.member.resize(HEADER_BYTES, 0);
        self.deflate.reset();
        loop {
            let read = usize::try_from(self.deflate.total_in()).unwrap_or(usize::MAX);
            self.member.reserve(bytes / 4 + 1024);
            match self.deflate.compress_vec(&text[read..], &mut self.member, FlushCompress::Finish)? {
                Status::StreamEnd => break,
                Status::Ok | Status::BufError => {}
            }
        }
        let mut sum = Crc::new();
        sum.update(text);
        let too_long = |_| io::Error::new(io::ErrorKind::FileTooLarge, "a line is too long to be compressed");
        let text_bytes = u32::try_from(bytes).map_err(too_long)?;
        let member_bytes = u32::try_from(self.member.len() + TRAILER_BYTES).map_err(too_long)?;
        self.member[..HEADER_BYTES].copy_from_slice(&member_header(member_bytes, text_bytes));
        self.member.extend_from_slice(&sum.sum().to_le_bytes());
        self.member.extend_from_slice(&text_bytes.to_le_bytes());
        self.out.write_all(&self.member)?;
        self.pending.drain(..bytes);
        self.searched = 0;
        Ok(())
    }
}

impl<W: Write> Write for GzipWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // In pieces, so that what is left behind a member is short.
        let bytes = &bytes[..bytes.len().min(MEMBER_BYTES)];
        self.pending.extend_from_slice(bytes);
        while self.pending.len() >= MEMBER_BYTES {
            let before = memrchr(b'\n', &self.pending[self.searched.min(MEMBER_BYTES)..MEMBER_BYTES]);
            let end = match before {
                Some(at) => Some(self.searched.min(MEMBER_BYTES) + at),
                // A long line is not divided.
                None => {
                    let from = self.searched.max(MEMBER_BYTES);
                    memchr(b'\n', &self.pending[from..]).map(|at| from + at)
                }
            };
            match end {
                Some(end) => self.write_member(end + 1)?,
                None => {
                    self.searched = self.pending.len();
                    break;
                }
            }
        }
        Ok(bytes.len())
    }

    /// Leaves what is pending to the next member.
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
