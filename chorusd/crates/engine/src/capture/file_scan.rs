//! Finds the transcripts of a program, and the state of each.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use chorus_store::catalog::CapturedFile;
use jiff::Timestamp;

use super::source::CaptureSource;

/// The limit on nested directories.
const MAX_DEPTH: usize = 8;

/// A transcript, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TranscriptFile {
    pub source: CaptureSource,
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    pub modified_at: Timestamp,
}

impl TranscriptFile {
    /// Describes a file; `None` if it is not a regular one.
    pub(super) fn new(source: CaptureSource, path: PathBuf, metadata: &Metadata) -> Option<Self> {
        let modified_at = Timestamp::try_from(metadata.modified().ok()?).ok()?;
        let (device, inode, size) = (metadata.dev(), metadata.ino(), metadata.len());
        metadata.is_file().then_some(Self { source, path, device, inode, size, modified_at })
    }

    /// Returns true if the file is as it was when it was read.
    pub(super) fn is_as_read(&self, read: &CapturedFile) -> bool {
        (self.device, self.inode, self.size) == (read.device, read.inode, read.size)
            && self.modified_at == read.modified_at
    }
}

/// Finds all transcripts of a source below its roots. Symbolic links are not followed. Blocks.
pub(super) fn find_transcripts(source: CaptureSource, roots: &[PathBuf]) -> Vec<TranscriptFile> {
    let mut found = Vec::new();
    for root in roots {
        walk(root, 0, &mut |_| {}, &mut |path, metadata| {
            if source.is_transcript(&path) {
                found.extend(TranscriptFile::new(source, path, &metadata));
            }
        });
    }
    found
}

/// Calls `on_dir` for a directory and all below it, before their contents are read, and `on_file` for each file. Blocks.
pub(super) fn walk(
    dir: &Path,
    depth: usize,
    on_dir: &mut dyn FnMut(&Path),
    on_file: &mut dyn FnMut(PathBuf, Metadata),
) {
    on_dir(dir);
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(dir = %dir.display(), %error, "cannot list a directory of transcripts");
            }
            return;
        }
    };
    for entry in entries.flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() && depth < MAX_DEPTH {
            walk(&entry.path(), depth + 1, on_dir, on_file);
        } else if metadata.is_file() {
            on_file(entry.path(), metadata);
        }
    }
}
