//! Decompresses files that tools compressed with zstd.
//!
//! The decoder keeps a window of what it wrote, which is limited, and one block more. A block that was made to do harm can become far
//! longer than the format allows before that is seen. So `chorusctl` decompresses the files that a user names, and the daemon only those
//! in the directory of a tool.

use std::error::Error;
use std::fmt;
use std::io::{self, Read};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const MAGIC: u32 = 0xFD2F_B528;

/// The magic of a frame that has no contents for us, without its last four bits.
const SKIPPABLE_MAGIC: u32 = 0x184D_2A50;

/// The limit on what a decoder keeps. That of the highest usual level is a quarter.
const MAX_WINDOW_BYTES: u64 = 32 << 20;

/// The limit on the length of a transcript that was compressed.
pub const MAX_TRANSCRIPT_BYTES: u64 = 4 << 30;

/// Returns whether `start`, the first bytes of a file, are those of a compressed one.
#[must_use]
pub fn is_compressed(start: &[u8]) -> bool {
    start.starts_with(&MAGIC.to_le_bytes())
}

/// Reads what was compressed. Damaged and incomplete data is an error, and so is a result longer than a limit.
pub struct ZstdReader<R> {
    source: R,
    decoder: FrameDecoder,
    /// Bytes that may still be returned.
    left: u64,
}

impl<R> fmt::Debug for ZstdReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZstdReader").field("left", &self.left).finish_non_exhaustive()
    }
}

impl<R: Read> ZstdReader<R> {
    /// Decompresses `source`, which should be buffered, to at most `limit` bytes.
    pub fn new(source: R, limit: u64) -> Self {
        Self { source, decoder: FrameDecoder::new(), left: limit }
    }

    /// Begins the next frame. Returns false at the end of the source.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            let mut header = Vec::with_capacity(18);
            if self.source.by_ref().take(4).read_to_end(&mut header)? == 0 {
                return Ok(false);
            }
            let magic = header.as_slice().try_into().map(u32::from_le_bytes).map_err(|_| damaged("it is cut off"))?;
            if magic & !0xF == SKIPPABLE_MAGIC {
                let length = u64::from(u32::from_le_bytes(self.read_array()?));
                io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
                continue;
            }
            if magic != MAGIC {
                return Err(damaged("it is not compressed with zstd"));
            }
            self.read_header(&mut header)?;
            self.decoder.reset(header.as_slice()).map_err(damaged)?;
            return Ok(true);
        }
    }

    /// Reads the rest of a frame's header.
    fn read_header(&mut self, header: &mut Vec<u8>) -> io::Result<()> {
        let [descriptor] = self.read_array()?;
        header.push(descriptor);
        let is_single_segment = descriptor & 0x20 != 0;
        let mut window = 0;
        if !is_single_segment {
            let [byte] = self.read_array()?;
            header.push(byte);
            let base = 1_u64 << (10 + (byte >> 3));
            window = base + base / 8 * u64::from(byte & 7);
        }
        let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let size_bytes = match descriptor >> 6 {
            0 => usize::from(is_single_segment),
            1 => 2,
            2 => 4,
            _ => 8,
        };
        let at = header.len() + dictionary_bytes;
        let rest = (dictionary_bytes + size_bytes) as u64;
        if (self.source.by_ref().take(rest).read_to_end(header)? as u64) < rest {
            return Err(damaged("it is cut off"));
        }
        if is_single_segment {
            window = header[at..].iter().rev().fold(0, |size, byte| size << 8 | u64::from(*byte));
        }
        if window > MAX_WINDOW_BYTES {
            return Err(damaged(format!(
                "it needs a window of {window} bytes; up to {MAX_WINDOW_BYTES} are supported"
            )));
        }
        Ok(())
    }

    fn read_array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes).map_err(damaged)?;
        Ok(bytes)
    }
}

impl<R: Read> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1)).map_err(damaged)?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 {
                self.left = self.left.checked_sub(read as u64).ok_or_else(|| damaged("its contents are too long"))?;
                return Ok(read);
            }
            if !self.next_frame()? {
                return Ok(0);
            }
        }
    }
}

fn damaged(reason: impl Into<Box<dyn Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("cannot decompress it: {}", reason.into()))
}
