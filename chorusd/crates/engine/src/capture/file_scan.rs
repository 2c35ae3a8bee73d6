//! Finds the transcripts of a program, and the state of each.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use chorus_catalog::CapturedFile;
use chorus_tool_files::{message_files, session_of_message};
use jiff::Timestamp;

use super::source::CaptureSource;
use super::sources::{FileKind, Root};
use super::walk::{WalkEntry, walk};

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
        // A transcript may be a link.
        let metadata = path.metadata().ok()?;
        Self::new(source, path, &metadata)
    }

    /// Adds the log of a database, in which its last writes are.
    fn with_log(mut self) -> Self {
        if self.kind != FileKind::Database {
            return self;
        }
        // It is beside the database, not beside a link to it.
        let mut log = self.path.canonicalize().unwrap_or_else(|_| self.path.clone()).into_os_string();
        log.push(WAL_SUFFIX);
        // Reading a database creates an empty one.
        if let Ok(log) = fs::symlink_metadata(log)
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

/// The files of a source.
#[derive(Debug, Default)]
pub(super) struct FoundFiles {
    pub transcripts: Vec<TranscriptFile>,
    /// Directories that could not be listed.
    pub unreadable: Vec<PathBuf>,
}

/// Finds all files with conversations of a source below its roots. Symbolic links are followed. Blocks.
pub(super) fn find_transcripts(source: CaptureSource, roots: &[Root]) -> FoundFiles {
    let mut found = FoundFiles::default();
    for Root { dir, depth } in roots {
        walk(dir, *depth, true, &mut |entry| match entry {
            WalkEntry::File { path, metadata, .. } => {
                found.transcripts.extend(TranscriptFile::new(source, path, &metadata));
            }
            WalkEntry::Unreadable { dir, error } => {
                tracing::warn!(dir = %dir.display(), %error, "cannot list a directory of transcripts");
                found.unreadable.push(dir);
            }
            WalkEntry::Dir { .. } | WalkEntry::Link => {}
        });
    }
    found
}
