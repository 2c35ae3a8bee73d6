//! Finds the transcripts of a program, and the state of each.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use chorus_store::catalog::CapturedFile;
use chorus_tool_files::{message_files, session_of_message};
use jiff::Timestamp;

use super::source::CaptureSource;
use super::sources::{FileKind, Root};

/// SQLite adds this to the name of a database for the log of its last writes.
const WAL_SUFFIX: &str = "-wal";

/// A transcript or a database of conversations, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TranscriptFile {
    pub source: CaptureSource,
    pub kind: FileKind,
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
    /// Of a database, with the log of its last writes; of a conversation in many files, with its messages.
    pub size: u64,
    /// When it, or what counts in its size, was written.
    pub modified_at: Timestamp,
}

impl TranscriptFile {
    /// Describes a file; `None` if it is not a regular one, or has no conversation.
    pub(super) fn new(source: CaptureSource, path: PathBuf, metadata: &Metadata) -> Option<Self> {
        let kind = source.kind(&path)?;
        let modified_at = Timestamp::try_from(metadata.modified().ok()?).ok()?;
        let (device, inode, size) = (metadata.dev(), metadata.ino(), metadata.len());
        let file = Self { source, kind, path, device, inode, size, modified_at };
        metadata.is_file().then(|| file.with_log().with_messages())
    }

    /// Describes the file whose conversations change when `path`, which is below a root, is written. Blocks.
    pub(super) fn of_written(source: CaptureSource, path: PathBuf) -> Option<Self> {
        let logged = path.to_str().and_then(|path| path.strip_suffix(WAL_SUFFIX)).map(PathBuf::from);
        let database = logged.filter(|path| source.kind(path) == Some(FileKind::Database));
        let session = || session_of_message(&path).filter(|path| source.kind(path) == Some(FileKind::MessageFiles));
        let path = database.or_else(|| source.kind(&path).map(|_| path.clone())).or_else(session)?;
        let metadata = path.symlink_metadata().ok()?;
        Self::new(source, path, &metadata)
    }

    /// Adds the log of a database, in which its last writes are.
    fn with_log(mut self) -> Self {
        let mut log = self.path.clone().into_os_string();
        log.push(WAL_SUFFIX);
        // Reading a database creates an empty one.
        if self.kind == FileKind::Database
            && let Ok(log) = fs::symlink_metadata(log)
            && log.len() > 0
        {
            self.size += log.len();
            let written = log.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
            self.modified_at = written.map_or(self.modified_at, |at| at.max(self.modified_at));
        }
        self
    }

    /// Adds the files of messages.
    fn with_messages(mut self) -> Self {
        if self.kind == FileKind::MessageFiles {
            for message in message_files(&self.path) {
                self.size += message.len();
                let written = message.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
                self.modified_at = written.map_or(self.modified_at, |at| at.max(self.modified_at));
            }
        }
        self
    }

    /// Returns the path by which the row of the file is known: the same whether it is compressed or not.
    pub(super) fn row_path(&self) -> PathBuf {
        match self.kind {
            FileKind::CompressedLines => self.path.with_extension(""),
            FileKind::Lines | FileKind::Document | FileKind::MessageFiles | FileKind::Database => self.path.clone(),
        }
    }

    /// Returns true if the file is as it was when it was read.
    pub(super) fn is_as_read(&self, read: &CapturedFile) -> bool {
        (self.device, self.inode, self.size) == (read.device, read.inode, read.size)
            && self.modified_at == read.modified_at
    }
}

/// Finds all files with conversations of a source below its roots. Symbolic links are not followed. Blocks.
pub(super) fn find_transcripts(source: CaptureSource, roots: &[Root]) -> Vec<TranscriptFile> {
    let mut found = Vec::new();
    for Root { dir, depth } in roots {
        walk(dir, *depth, &mut |_, _| {}, &mut |path, metadata| {
            found.extend(TranscriptFile::new(source, path, &metadata));
        });
    }
    found
}

/// Calls `on_dir` for a directory and those up to `depth` below it, before their contents are read, with the depth that is left,
/// and `on_file` for each file. Blocks.
pub(super) fn walk(
    dir: &Path,
    depth: usize,
    on_dir: &mut dyn FnMut(&Path, usize),
    on_file: &mut dyn FnMut(PathBuf, Metadata),
) {
    on_dir(dir, depth);
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
        if metadata.is_dir() && depth > 0 {
            walk(&entry.path(), depth - 1, on_dir, on_file);
        } else if metadata.is_file() {
            on_file(entry.path(), metadata);
        }
    }
}
