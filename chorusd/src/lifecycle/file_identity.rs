//! Which file a path leads to, whatever the path is.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

/// Device and inode: the same as long as the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// The identity of the file with these metadata.
    #[must_use]
    pub fn from_metadata(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}
