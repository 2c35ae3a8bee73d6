//! Identifies files independently of their paths.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

/// Device and inode, which are the same as long as the file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// Returns the identity of the file with this metadata.
    #[must_use]
    pub fn from_metadata(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}
