//! Cache of the indexes of session files that are read in pages: a file is parsed once, and after that reading a page
//! costs only that page.

use std::collections::VecDeque;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_base::sync::Mutex;
use chorus_session::index::{SessionIndex, SessionReader, build};
use chorus_session::stored_message::StoredMessage;
use chorus_session::{FormatError, SessionInput};

use super::session_files::read_error;
use super::session_form;

/// Memory limit of all cached indexes, in bytes; the newest one is kept whatever its size.
const MAX_CACHE_BYTES: usize = 8 << 20;

/// The least recently used cache of indexes.
#[derive(Debug, Default)]
pub struct IndexCache(Mutex<CacheEntries>);

/// Entries in order of use; the last one was used most recently.
type CacheEntries = VecDeque<(FileIdentity, Arc<SessionIndex>)>;

/// Identifies a file and its version. The change time of the inode advances even if somebody resets the modification
/// time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileIdentity {
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

impl IndexCache {
    /// Opens a session file. Blocks; the first time and after a change, for as long as reading the whole file takes.
    ///
    /// # Errors
    /// `session_not_found` if the file does not exist, else the I/O error. The inner error says why the file is not a
    /// valid session.
    pub fn open(&self, path: &Path) -> Result<Result<IndexedFile, FormatError>> {
        let failed = |e: io::Error| read_error(path, &e);
        let file = session_form::open(path).map_err(failed)?;
        let identity = FileIdentity::of(&file.file().metadata().map_err(failed)?);
        let paged = |file, index| Ok(Ok(IndexedFile { path: path.to_owned(), file: Arc::new(file), index }));
        if let Some(index) = self.lookup(&identity) {
            return paged(file, index);
        }
        let index = match build(&file).map_err(failed)? {
            Ok(index) => Arc::new(index),
            Err(error) => return Ok(Err(error)),
        };
        // Do not cache the index if the file was changed while it was read.
        if FileIdentity::of(&file.file().metadata().map_err(failed)?) == identity {
            self.insert(identity, index.clone());
        }
        paged(file, index)
    }

    /// The same as [`open`](Self::open), for a file that is read once: its index does not take the place of others in the cache.
    pub fn open_once(&self, path: &Path) -> Result<Result<IndexedFile, FormatError>> {
        let failed = |e: io::Error| read_error(path, &e);
        let file = session_form::open(path).map_err(failed)?;
        let known = self.lookup(&FileIdentity::of(&file.file().metadata().map_err(failed)?));
        let index = match known {
            Some(index) => index,
            None => match build(&file).map_err(failed)? {
                Ok(index) => Arc::new(index),
                Err(error) => return Ok(Err(error)),
            },
        };
        Ok(Ok(IndexedFile { path: path.to_owned(), file: Arc::new(file), index }))
    }

    fn lookup(&self, identity: &FileIdentity) -> Option<Arc<SessionIndex>> {
        let mut recent = self.0.lock();
        let at = recent.iter().position(|(of, _)| of == identity)?;
        let found = recent.remove(at)?;
        let index = found.1.clone();
        recent.push_back(found);
        Some(index)
    }

    fn insert(&self, identity: FileIdentity, index: Arc<SessionIndex>) {
        let mut recent = self.0.lock();
        // An index of an earlier version of the file is useless.
        recent.retain(|(of, _)| (of.device, of.inode) != (identity.device, identity.inode));
        recent.push_back((identity, index));
        let mut size: usize = recent.iter().map(|(_, index)| index.resident_bytes()).sum();
        while size > MAX_CACHE_BYTES && recent.len() > 1 {
            size -= recent.pop_front().map_or(0, |(_, index)| index.resident_bytes());
        }
    }
}

/// An open session file with its index.
#[derive(Debug, Clone)]
pub struct IndexedFile {
    path: PathBuf,
    file: Arc<SessionInput>,
    pub index: Arc<SessionIndex>,
}

impl IndexedFile {
    /// Returns a reader of the messages from index `number` on, counted from 0.
    #[must_use]
    pub fn messages_from(&self, number: u64) -> MessageReader {
        let reader = SessionReader::new(self.file.clone(), self.index.clone(), number);
        MessageReader { path: self.path.clone(), reader }
    }
}

/// Reads the messages of a file in order.
#[derive(Debug)]
pub struct MessageReader {
    path: PathBuf,
    reader: SessionReader,
}

impl MessageReader {
    /// Returns the next message, `None` after the last one. Blocks.
    ///
    /// # Errors
    /// The outer error is an I/O error; the inner one says that the file has changed since it was indexed.
    pub fn read(&mut self) -> Result<Result<Option<StoredMessage>, FormatError>> {
        self.reader.read().map_err(|e| read_error(&self.path, &e))
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

    fn open(indexes: &IndexCache, path: &Path) -> Arc<SessionIndex> {
        indexes.open(path).unwrap().unwrap().index
    }

    #[test]
    fn a_file_is_gone_through_once_until_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a.json"), dir.path().join("b.json"));
        fs::write(&path, text("before")).unwrap();
        let indexes = IndexCache::default();
        let first = open(&indexes, &path);
        assert!(Arc::ptr_eq(&first, &open(&indexes, &path)));
        // Another file of the same length takes its path.
        fs::write(&other, text("behind")).unwrap();
        fs::rename(&other, &path).unwrap();
        let second = open(&indexes, &path);
        assert_ne!(second.sha256, first.sha256);
        fs::write(&path, text("written into it")).unwrap();
        let third = open(&indexes, &path);
        assert_ne!(third.sha256, second.sha256);
        assert_eq!(indexes.0.lock().len(), 2, "the one of the inode's earlier state is gone");
        fs::write(&path, "{}").unwrap();
        assert!(indexes.open(&path).unwrap().is_err());
        fs::remove_file(&path).unwrap();
        assert!(indexes.open(&path).is_err());
    }
}
