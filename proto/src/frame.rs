//! Frames: a 4-byte big-endian length, then that many bytes.

use std::io::{self, Read, Write};

/// Default for the longest frame: 16 MiB.
pub const MAX_FRAME: usize = 16 * 1024 * 1024;

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 4;

/// Initial capacity of the reader's buffer in bytes.
const INITIAL_CAPACITY: usize = 16 * 1024;

/// A frame is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameTooLong {
    pub length: usize,
    pub limit: usize,
}

impl std::fmt::Display for FrameTooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a frame of {} bytes is longer than the limit of {}", self.length, self.limit)
    }
}

impl std::error::Error for FrameTooLong {}

/// Decodes the length of a body and checks it before memory is allocated for it.
///
/// # Errors
/// [`FrameTooLong`] above `limit`.
pub fn decode_header(header: [u8; HEADER_BYTES], limit: usize) -> Result<usize, FrameTooLong> {
    let length = u32::from_be_bytes(header) as usize;
    if length > limit { Err(FrameTooLong { length, limit }) } else { Ok(length) }
}

/// Encodes the header for a body of `length` bytes.
///
/// # Errors
/// [`FrameTooLong`] above `limit`, or above the largest number of four bytes.
pub fn encode_header(length: usize, limit: usize) -> Result<[u8; HEADER_BYTES], FrameTooLong> {
    match u32::try_from(length) {
        Ok(word) if length <= limit => Ok(word.to_be_bytes()),
        _ => Err(FrameTooLong { length, limit }),
    }
}

/// Writes `body` as one frame with a single write.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for a body longer than `limit`, or the writer's error.
pub fn write(writer: &mut impl Write, body: &[u8], limit: usize) -> io::Result<()> {
    let header = encode_header(body.len(), limit).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
    let mut frame = Vec::with_capacity(HEADER_BYTES + body.len());
    frame.extend_from_slice(&header);
    frame.extend_from_slice(body);
    writer.write_all(&frame)?;
    writer.flush()
}

/// Reads one frame into `body`, whose memory grows with the bytes that arrive, not with the announced length. Returns
/// `Ok(false)` if the other side closed between two frames.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] for a length above `limit`, [`io::ErrorKind::UnexpectedEof`] inside a frame.
pub fn read(reader: &mut impl Read, body: &mut Vec<u8>, limit: usize) -> io::Result<bool> {
    let mut header = [0; HEADER_BYTES];
    let mut filled = 0;
    while filled < HEADER_BYTES {
        match reader.read(&mut header[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    let length = decode_header(header, limit).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
    body.clear();
    body.reserve(length.min(INITIAL_CAPACITY));
    let read = reader.take(length as u64).read_to_end(body)?;
    if read < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(true) }
}
