//! Session files that are compressed: gzip, which `zcat` and other programs read, in members that can be read one by one. A
//! member has about 128 KiB of text, cut at line ends, and the extra field of its header says how long it and its text are.
//! Gzip that another program wrote is read, too, but only as a whole.

mod reader;
mod writer;

use std::io::{self, Read as _};

use flate2::read::MultiGzDecoder;

pub(crate) use reader::FileReader;
pub use reader::{GzipFile, GzipReader};
pub use writer::GzipWriter;

/// The first bytes of a gzip file. A session file that is not compressed begins otherwise.
pub const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Bytes of text of a member, unless a single line is longer.
const MEMBER_BYTES: usize = 128 << 10;

/// Bytes before the compressed text of a member, and after it.
const HEADER_BYTES: usize = 24;
const TRAILER_BYTES: usize = 8;

/// The most bytes of text of a file; more is refused, because a few bytes can be made to become any number. Larger sessions are not compressed.
pub const MAX_TEXT_BYTES: u64 = 1 << 30;

/// The most bytes of text of a member that is read at once.
const MAX_MEMBER_TEXT: u32 = 64 << 20;

/// The most bytes of text that a byte of deflate can become. A header that claims more is wrong.
const MAX_RATIO: u64 = 1032;

/// Everything before the lengths: deflate, an extra field of 12 bytes, no time, an unknown system; the subfield `CH` of 8 bytes.
const HEADER_START: [u8; 16] = [MAGIC[0], MAGIC[1], 8, 4, 0, 0, 0, 0, 0, 255, 12, 0, b'C', b'H', 8, 0];

/// Digits of the hash of messages.
const HASH_DIGITS: usize = 64;

/// Everything around the hash in the last member, which has no text: as in the header of any member, with the lengths 102 and 0, then the
/// subfield `CS` of 64 bytes; the compressed nothing, its checksum and its length.
const HASH_START: [u8; 28] = [
    MAGIC[0], MAGIC[1], 8, 4, 0, 0, 0, 0, 0, 255, 80, 0, b'C', b'H', 8, 0, 102, 0, 0, 0, 0, 0, 0, 0, b'C', b'S', 64, 0,
];
const HASH_END: [u8; 10] = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const HASH_MEMBER_BYTES: usize = HASH_START.len() + HASH_DIGITS + HASH_END.len();

/// Returns the last member of a file whose messages have this hash.
fn hash_member(sha256: &str) -> Vec<u8> {
    [&HASH_START, sha256.as_bytes(), &HASH_END].concat()
}

/// Returns the hash in the last member of a file; `None` if it is another one.
fn parse_hash_member(member: &[u8; HASH_MEMBER_BYTES]) -> Option<String> {
    let digits = member.strip_prefix(&HASH_START)?.strip_suffix(&HASH_END)?;
    let is_hash = digits.iter().all(u8::is_ascii_hexdigit);
    is_hash.then(|| String::from_utf8_lossy(digits).into_owned())
}

/// Returns the text of a gzip file that is in memory.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if it is damaged, or too large.
pub fn read_text(gzip: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    MultiGzDecoder::new(gzip).take(MAX_TEXT_BYTES + 1).read_to_end(&mut text).map_err(reader::as_damage)?;
    if text.len() as u64 > MAX_TEXT_BYTES { Err(reader::too_large()) } else { Ok(text) }
}

/// Returns the header of a member of `member_bytes` with `text_bytes` of text.
fn member_header(member_bytes: u32, text_bytes: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..16].copy_from_slice(&HEADER_START);
    header[16..20].copy_from_slice(&member_bytes.to_le_bytes());
    header[20..].copy_from_slice(&text_bytes.to_le_bytes());
    header
}

/// Returns the bytes of a member and of its text; `None` if another program wrote the header.
fn parse_member_header(header: &[u8; HEADER_BYTES]) -> Option<(u32, u32)> {
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (member_bytes, text_bytes) = (word(16), word(20));
    let is_ours = header[..16] == HEADER_START
        && member_bytes as usize >= HEADER_BYTES + TRAILER_BYTES
        && text_bytes <= MAX_MEMBER_TEXT
        && u64::from(text_bytes) <= u64::from(member_bytes) * MAX_RATIO;
    is_ours.then_some((member_bytes, text_bytes))
}

#[cfg(test)]
mod tests;
