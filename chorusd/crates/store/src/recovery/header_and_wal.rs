//! The files of a database before SQLite opens it.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};

use super::file_watch::DatabaseLock;

/// Header and log of a database. The lock keeps other processes out while this value lives.
#[derive(Debug)]
pub(super) struct DatabaseFiles {
    pub path: PathBuf,
    /// Length of the database in bytes; 0 if it is empty or missing.
    pub length: u64,
    pub header: [u8; 100],
    pub log_path: PathBuf,
    /// Content of the write-ahead log.
    pub log: Vec<u8>,
    _lock: Option<DatabaseLock>,
}

impl DatabaseFiles {
    /// Reads the header of `path` and its log. `lock` is the lock on the database, if the database exists.
    pub(super) fn read(path: &Path, lock: Option<DatabaseLock>) -> Result<Self> {
        let failed = |e: io::Error| Error::io(format_args!("cannot read {}", path.display()), &e);
        let mut header = [0; 100];
        if let Some(lock) = &lock {
            let _ = lock.file().read_exact_at(&mut header, 0);
        }
        let log_path = path.with_extension("db-wal");
        let log = match fs::read(&log_path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other.map_err(failed)?,
        };
        let length = path.metadata().map_or(0, |of| of.len());
        Ok(Self { path: path.to_owned(), length, header, log_path, log, _lock: lock })
    }

    /// The page size in the header.
    pub(super) fn page_size(&self) -> Option<usize> {
        match usize::from(u16::from_be_bytes([self.header[16], self.header[17]])) {
            1 => Some(65_536),
            size => Some(size).filter(|size| size.is_power_of_two() && *size >= 512),
        }
    }
}
