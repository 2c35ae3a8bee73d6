//! The places that take the files of a backup.

use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use super::PIECE;
use super::manifest::{Entry, Manifest};
use crate::failure::Result;
use crate::store::catalog::hex;

/// The outcome of the end of a backup.
#[derive(Debug, Default)]
pub struct Finished {
    /// Copies that were deleted.
    pub deleted: u64,
    /// Warnings for a person.
    pub warnings: Vec<String>,
}

/// A place for a backup.
pub trait Sink: Send + 'static {
    /// The hash of a file that is in the backup before and has not changed since, told by its stamp.
    fn known(&self, path: &str, stamp: &str) -> Option<String>;

    /// Takes a file of exactly `entry.size` bytes; returns its SHA-256 and whether it was new.
    ///
    /// # Errors
    /// The place does not take it; `source` never fails.
    fn file(&mut self, entry: &Entry, source: &mut dyn Read) -> io::Result<(String, bool)>;

    /// Takes a directory or a link.
    ///
    /// # Errors
    /// The place does not take it.
    fn other(&mut self, entry: &Entry) -> io::Result<()>;

    /// Completes the backup.
    ///
    /// # Errors
    /// The place does not take the manifest, or a database is damaged; the previous backup is as it was.
    fn finish(self, manifest: &Manifest) -> Result<Finished>
    where
        Self: Sized;
}

/// Copies `source` to `put`; returns the SHA-256.
pub fn copy(source: &mut dyn Read, mut put: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<String> {
    let (mut hash, mut piece) = (Sha256::new(), vec![0; PIECE]);
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
