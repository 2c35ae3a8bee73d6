//! The places that take the files of a backup.

use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use super::READ_BUFFER_BYTES;
use super::manifest::{Manifest, ManifestEntry};
use crate::error::Result;
use crate::store::catalog::hex;

/// The outcome of the end of a backup.
#[derive(Debug, Default)]
pub struct SinkResult {
    /// Copies that were deleted.
    pub deleted: u64,
    /// Warnings for a person.
    pub warnings: Vec<String>,
}

/// A place for a backup.
pub trait BackupSink: Send + 'static {
    /// The hash of a file that is in the backup before and has not changed since, told by its stamp.
    fn unchanged_sha256(&self, path: &str, stamp: &str) -> Option<String>;

    /// Takes a file of exactly `entry.size` bytes; returns its SHA-256 and whether it was new.
    ///
    /// # Errors
    /// The place does not take it; `source` never fails.
    fn store_file(&mut self, entry: &ManifestEntry, source: &mut dyn Read) -> io::Result<(String, bool)>;

    /// Takes a directory or a link.
    ///
    /// # Errors
    /// The place does not take it.
    fn store_other(&mut self, entry: &ManifestEntry) -> io::Result<()>;

    /// Completes the backup.
    ///
    /// # Errors
    /// The place does not take the manifest, or a database is damaged; the previous backup is as it was.
    fn finish(self, manifest: &Manifest) -> Result<SinkResult>
    where
        Self: Sized;
}

/// Copies `source` to `put`; returns the SHA-256.
pub fn copy_hashed(source: &mut dyn Read, mut put: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<String> {
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
