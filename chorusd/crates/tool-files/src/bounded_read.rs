//! Reads small files of other programs.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// The limit on the bytes of a file that stands beside a transcript.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// Reads a file; `None` if it is longer than `limit`, or no regular file of UTF-8.
pub(crate) fn read_text(path: &Path, limit: u64) -> Option<String> {
    let (file, length) = open(path)?;
    if length > limit {
        return None;
    }
    let mut text = String::new();
    file.take(limit).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Reads the end of a file to which lines are added.
pub(crate) fn read_end(path: &Path) -> Option<Vec<u8>> {
    let (mut file, length) = open(path)?;
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Opens a regular file, and returns it with its length. Links are not followed, because they may lead anywhere, and nothing
/// waits for the writer of a pipe.
fn open(path: &Path) -> Option<(File, u64)> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((file, metadata.len()))
}
