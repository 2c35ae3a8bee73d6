//! Session files that are read in pages: each is gone through once, and after that a page costs a page.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::session_files::reading;
use crate::failure::Result;
use crate::message::Stored;
use crate::session::FormatError;
use crate::session::index::{Index, Reader, build};

/// Bytes of memory that all indexes may take; the newest one is kept whatever it takes.
const ROOM: usize = 8 << 20;

/// Indexes of the files that were read last.
#[derive(Debug, Default)]
pub struct Indexes(Mutex<Recent>);

/// The last one that was asked for stands at the end.
type Recent = VecDeque<(Identity, Arc<Index>)>;

/// What tells a file from any other one, and from itself after a change. The time of change of the inode goes on
/// whatever anybody sets the other one to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Indexes {
    /// Opens a session file. Blocks; the first time, and after a change, for as long as reading all of it takes.
    ///
    /// # Errors
    /// `session_not_found` where it is gone, else what the disk says; within that, why it is no session.
    pub fn open(&self, path: &Path) -> Result<Result<Paged, FormatError>> {
        let failed = |e: io::Error| reading(path, &e);
        let file = File::open(path).map_err(failed)?;
        let identity = Identity::of(&file.metadata().map_err(failed)?);
        let paged = |file, index| Ok(Ok(Paged { path: path.to_owned(), file: Arc::new(file), index }));
        if let Some(index) = self.find(&identity) {
            return paged(file, index);
        }
        let index = match build(&file).map_err(failed)? {
            Ok(index) => Arc::new(index),
            Err(error) => return Ok(Err(error)),
        };
        // Somebody may have written into it meanwhile.
        if Identity::of(&file.metadata().map_err(failed)?) == identity {
            self.keep(identity, index.clone());
        }
        paged(file, index)
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, Recent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, identity: &Identity) -> Option<Arc<Index>> {
        let mut recent = self.recent();
        let at = recent.iter().position(|(of, _)| of == identity)?;
        let found = recent.remove(at)?;
        let index = found.1.clone();
        recent.push_back(found);
        Some(index)
    }

    fn keep(&self, identity: Identity, index: Arc<Index>) {
        let mut recent = self.recent();
        // One of the same file before a change is of no use any more.
        recent.retain(|(of, _)| (of.device, of.inode) != (identity.device, identity.inode));
        recent.push_back((identity, index));
        let mut size: usize = recent.iter().map(|(_, index)| index.size()).sum();
        while size > ROOM && recent.len() > 1 {
            size -= recent.pop_front().map_or(0, |(_, index)| index.size());
        }
    }
}

/// A session file that is open, with its index.
#[derive(Debug, Clone)]
pub struct Paged {
    path: PathBuf,
    file: Arc<File>,
    pub index: Arc<Index>,
}

impl Paged {
    /// Its messages from number `number` on, counted from 0.
    #[must_use]
    pub fn messages_from(&self, number: u64) -> Messages {
        let reader = Reader::new(self.file.clone(), self.index.clone(), number);
        Messages { path: self.path.clone(), reader }
    }
}

/// Messages of a file, one after the other.
#[derive(Debug)]
pub struct Messages {
    path: PathBuf,
    reader: Reader,
}

impl Messages {
    /// The next message, `None` behind the last one. Blocks.
    ///
    /// # Errors
    /// What the disk says; within that, how the file became another one.
    pub fn read(&mut self) -> Result<Result<Option<Stored>, FormatError>> {
        self.reader.read().map_err(|e| reading(&self.path, &e))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn text(content: &str) -> String {
        format!(
            "{{\n  \"schema\": 2,\n  \"session_id\": \"x\",\n  \"saved_at\": \"2026-02-12T10:00:00Z\",\n  \"message_count\": 1,\n  \
             \"messages\": [\n    {{\"id\":\"1\",\"role\":\"user\",\"content\":\"{content}\",\"timestamp\":\"2026-02-12T09:00:00Z\"}}\n  ]\n}}\n"
        )
    }

    fn open(indexes: &Indexes, path: &Path) -> Arc<Index> {
        indexes.open(path).unwrap().unwrap().index
    }

    #[test]
    fn a_file_is_gone_through_once_until_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a.json"), dir.path().join("b.json"));
        fs::write(&path, text("before")).unwrap();
        let indexes = Indexes::default();
        let first = open(&indexes, &path);
        assert!(Arc::ptr_eq(&first, &open(&indexes, &path)));
        // Another file in its place, of the same length.
        fs::write(&other, text("behind")).unwrap();
        fs::rename(&other, &path).unwrap();
        let second = open(&indexes, &path);
        assert_ne!(second.sha256, first.sha256);
        fs::write(&path, text("written into it")).unwrap();
        let third = open(&indexes, &path);
        assert_ne!(third.sha256, second.sha256);
        assert_eq!(indexes.recent().len(), 2, "the one of the inode's earlier state is gone");
        fs::write(&path, "{}").unwrap();
        assert!(indexes.open(&path).unwrap().is_err());
        fs::remove_file(&path).unwrap();
        assert!(indexes.open(&path).is_err());
    }
}
