//! Detects changes of a database's files while it is open. SQLite continues to write into files that were deleted,
//! moved or replaced, and all of that is lost. The writer thread therefore compares the open files with their paths
//! before it acknowledges a commit, and once a second.

use std::cell::Cell;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use rustix::fs::{FlockOperation, fcntl_lock};

use super::lock_holders;

/// Attempts to acquire a lock that another process holds: copying or inspecting a database by hand ends soon.
const LOCK_ATTEMPTS: u32 = 40;
/// Time between two attempts.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Watches the files of an open database.
#[derive(Debug, Default)]
pub(crate) struct FileWatch {
    files: Vec<WatchedFile>,
    lock: Option<DatabaseLock>,
}

#[derive(Debug)]
struct WatchedFile {
    path: PathBuf,
    /// Device and inode; `None` until the file exists: SQLite creates a log when it first needs one.
    identity: Cell<Option<(u64, u64)>>,
    /// Size and modification time; `None` if other processes may write the file, or if it does not exist yet.
    content: Cell<Option<(u64, i64, i64)>>,
    /// Whether only this process writes the file.
    watches_content: bool,
}

impl WatchedFile {
    fn new(path: PathBuf, alone: bool) -> io::Result<Self> {
        let metadata = match std::fs::metadata(&path) {
            Ok(metadata) => Some(metadata),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let content = metadata.as_ref().filter(|_| alone).map(content_stamp);
        Ok(Self {
            identity: Cell::new(metadata.as_ref().map(file_identity)),
            content: Cell::new(content),
            watches_content: alone,
            path,
        })
    }
}

fn file_identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn content_stamp(metadata: &Metadata) -> (u64, i64, i64) {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

impl FileWatch {
    /// Watches the database `path`, which SQLite has open in WAL mode. With a `lock`, nobody else writes it, so its
    /// content is watched as well.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or if another process holds the lock.
    pub(crate) fn new(path: &Path, lock: Option<DatabaseLock>) -> Result<Self> {
        let failed = |e: io::Error| Error::io(format_args!("cannot access {}", path.display()), &e);
        if let Some(lock) = &lock {
            lock.ensure_held()?;
        }
        let alone = lock.is_some() && has_reliable_mtime(path);
        let log = path.with_extension("db-wal");
        let files = [path.to_owned(), log].map(|path| WatchedFile::new(path, alone));
        Ok(Self { files: files.into_iter().collect::<io::Result<_>>().map_err(failed)?, lock })
    }

    /// Compares the files with their paths, and their content with that of the last commit.
    ///
    /// # Errors
    /// Fails fatally if a file is gone, was replaced, or was written by another process.
    pub(crate) fn check_before_commit(&self) -> Result<()> {
        for file in &self.files {
            let Some(metadata) = file.metadata()? else { continue };
            if file.content.get().is_some_and(|known| known != content_stamp(&metadata)) {
                return Err(misplaced_error(&file.path, "was overwritten by another program"));
            }
        }
        self.lock.as_ref().map_or(Ok(()), DatabaseLock::ensure_held).map_err(|failure| Error {
            fatal: true,
            kind: ErrorKind::StorageFailed,
            ..failure
        })
    }

    /// Compares the files with their paths after a commit, and stores their new content stamps.
    pub(crate) fn check_after_commit(&self) -> Result<()> {
        for file in &self.files {
            if let Some(metadata) = file.metadata()? {
                file.content.set(file.watches_content.then(|| content_stamp(&metadata)));
            }
        }
        Ok(())
    }

    /// Returns whether there is nothing to watch.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

impl WatchedFile {
    /// Reads the metadata of the path; `None` if the file does not exist and did not exist before.
    fn metadata(&self) -> Result<Option<Metadata>> {
        let known = self.identity.get();
        match std::fs::metadata(&self.path) {
            Ok(metadata) if known.is_none_or(|known| known == file_identity(&metadata)) => {
                self.identity.set(Some(file_identity(&metadata)));
                Ok(Some(metadata))
            }
            Ok(_) => Err(misplaced_error(&self.path, "was replaced")),
            Err(e) if e.kind() == io::ErrorKind::NotFound && known.is_none() => Ok(None),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Err(misplaced_error(&self.path, "was deleted or moved"))
            }
            Err(e) => {
                let failure = Error::io(format_args!("cannot access {}", self.path.display()), &e);
                Err(Error { fatal: true, ..failure })
            }
        }
    }
}

fn misplaced_error(path: &Path, what: &str) -> Error {
    let message = format!("{} {what} while the daemon was running; the daemon accepts no more changes", path.display());
    let failure = Error::new(ErrorKind::StorageFailed, message)
        .hint("restore the correct file, then run `chorusctl daemon start`");
    Error { fatal: true, misplaced: true, ..failure }
}

/// Returns whether the file system updates the modification time together with the change. File systems that write back
/// later or on another machine may change it again.
#[cfg(target_os = "linux")]
fn has_reliable_mtime(path: &Path) -> bool {
    /// Magic numbers from linux/magic.h: ext2 to ext4, XFS, Btrfs, F2FS, tmpfs, overlay.
    const LOCAL: [u64; 6] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994, 0x794c_7630];
    rustix::fs::statfs(path).is_ok_and(|of| u64::try_from(of.f_type).is_ok_and(|kind| LOCAL.contains(&kind)))
}

#[cfg(not(target_os = "linux"))]
fn tells_changes(_: &Path) -> bool {
    false
}

/// Keeps all other processes out of a database, like SQLite's own exclusive locking mode: it locks all bytes of the
/// file, so no other process gets the shared lock that even reading needs. SQLite in this process is not affected,
/// because POSIX locks belong to the process.
///
/// The kernel drops the lock when this process closes *any* descriptor of the file: access an open database through
/// SQLite only.
#[derive(Debug)]
pub(crate) struct DatabaseLock {
    file: File,
    path: PathBuf,
}

impl DatabaseLock {
    /// Locks `path`, which SQLite may have open already or open later. Waits some seconds for another process to close
    /// it.
    ///
    /// # Errors
    /// `busy` if another process has it open.
    pub(crate) fn acquire(path: &Path) -> Result<Self> {
        let lock = Self::open(path)?;
        for tried in 0..LOCK_ATTEMPTS {
            match lock.ensure_held() {
                Err(failure) if failure.kind == ErrorKind::Busy => {
                    if tried == 0 {
                        tracing::warn!("{failure}; waiting for it to end");
                    }
                    std::thread::sleep(LOCK_RETRY_INTERVAL);
                }
                done => return done.map(|()| lock),
            }
        }
        lock.ensure_held().map(|()| lock)
    }

    /// As [`DatabaseLock::acquire`], without waiting; `None` if another process has the file open.
    pub(crate) fn try_acquire(path: &Path) -> Result<Option<Self>> {
        let lock = Self::open(path)?;
        match lock.ensure_held() {
            Err(failure) if failure.kind == ErrorKind::Busy => Ok(None),
            done => done.map(|()| Some(lock)),
        }
    }

    fn open(path: &Path) -> Result<Self> {
        let failed = |e: io::Error| Error::io(format_args!("cannot open {}", path.display()), &e);
        let file = File::options().read(true).write(true).open(path).map_err(failed)?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Locks the file again in case the lock was dropped.
    ///
    /// # Errors
    /// `busy` if another process has it open.
    pub(crate) fn ensure_held(&self) -> Result<()> {
        fcntl_lock(&self.file, FlockOperation::NonBlockingLockExclusive).map_err(|e| match io::Error::from(e) {
            e if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::PermissionDenied) => {
                let (path, holders) = (self.path.display(), lock_holders::list(&self.file));
                if holders.is_empty() {
                    return Error::new(ErrorKind::Busy, format!("another program has {path} open"))
                        .hint(format!("stop it and try again; find it with `fuser {path}`"));
                }
                let holders = holders.join(", ");
                Error::new(ErrorKind::Busy, format!("another program has {path} open: {holders}"))
                    .hint(format!("stop {holders}, and try again"))
            }
            e => Error::io(format_args!("cannot lock {}", self.path.display()), &e),
        })
    }

    /// The locked file. Read it through this descriptor only.
    #[must_use]
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rusqlite::Connection;

    use super::*;

    fn database() -> (tempfile::TempDir, PathBuf, Connection) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
        (dir, path, conn)
    }

    #[test]
    fn files_that_go_or_change_are_told_and_own_commits_are_not() {
        type Change = fn(&Path, &Path);
        let changes: [Change; 6] = [
            |path, _| fs::remove_file(path).unwrap(),
            |path, _| fs::rename(path, path.with_extension("moved")).unwrap(),
            |path, _| {
                fs::copy(path, path.with_extension("new")).unwrap();
                fs::rename(path.with_extension("new"), path).unwrap();
            },
            |_, log| fs::remove_file(log).unwrap(),
            |path, _| fs::write(path, fs::read(path).unwrap()).unwrap(),
            |_, log| fs::write(log, fs::read(log).unwrap()).unwrap(),
        ];
        for (n, change) in changes.into_iter().enumerate() {
            let (_dir, path, conn) = database();
            let watch = FileWatch::new(&path, Some(DatabaseLock::acquire(&path).unwrap())).unwrap();
            for _ in 0..3 {
                watch.check_before_commit().unwrap();
                conn.execute_batch("INSERT INTO t VALUES (zeroblob(9999)); PRAGMA wal_checkpoint").unwrap();
                watch.check_after_commit().unwrap();
            }
            change(&path, &path.with_extension("db-wal"));
            let failure = watch.check_before_commit().unwrap_err();
            assert!(failure.fatal && failure.message.contains("a.db"), "{n}: {failure:?}");
        }
    }
}
