//! The trait of the targets that a backup is written to.

use std::io::{self, Read};

use chorus_base::error::Result;
use chorus_base::hex;
use sha2::{Digest as _, Sha256};

use super::READ_BUFFER_BYTES;
use super::manifest::{Manifest, ManifestEntry};

/// The result of completing a backup.
#[derive(Debug, Default)]
pub struct SinkResult {
    /// Number of contents that were deleted.
    pub deleted: u64,
    /// Warnings for a person.
    pub warnings: Vec<String>,
}

/// A target that a backup is written to.
pub trait BackupSink: Send + 'static {
    /// Returns the SHA-256 of a file that has not changed since the previous backup, according to its stamp.
    fn unchanged_sha256(&self, path: &str, stamp: &str) -> Option<String>;

    /// Stores a file of exactly `entry.size` bytes. Returns its SHA-256, and true if the content is new.
    ///
    /// # Errors
    /// The target cannot be written; `source` never fails.
    fn store_file(&mut self, entry: &ManifestEntry, source: &mut dyn Read) -> io::Result<(String, bool)>;

    /// Stores a directory or a link.
    fn store_other(&mut self, entry: &ManifestEntry) -> io::Result<()>;

    /// Completes the backup.
    ///
    /// # Errors
    /// The manifest cannot be written, or a database is damaged. The previous backup is left intact.
    fn finish(self, manifest: &Manifest) -> Result<SinkResult>
    where
        Self: Sized;
}

/// Copies `source` into `put` and returns the SHA-256.
pub(super) fn copy_hashed(source: &mut dyn Read, mut put: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<String> {
    let (mut hash, mut piece) = (Sha256::new(), vec![0; READ_BUFFER_BYTES]);
    loop {
        match source.read(&mut piece) {
            Ok(0) => return Ok(hex(&hash.finalize())),
            Ok(count) => {
                hash.update(&piece[..count]);
                put(&piece[..count])?;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}
