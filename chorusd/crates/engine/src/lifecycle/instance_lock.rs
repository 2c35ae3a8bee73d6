//! Ensures one daemon per home by two locks that the system releases when the process ends: one on the home's
//! directory, which is the same file by every path to the home, and one on the lock file, the only lock that earlier
//! releases know.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex;
use chorus_proto::ErrorKind;
use chorus_proto::lock_file::{LOCK_FILE, LockHolder};

use super::file_identity::FileIdentity;

/// The number of attempts to acquire a lock. A client holds it shared for a moment when it checks for a daemon.
const LOCK_ATTEMPTS: u32 = 50;
/// The pause between two attempts.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// The locks of a home, held as long as the value lives.
#[derive(Debug)]
pub struct InstanceLock {
    home: PathBuf,
    directory: File,
    lock_file: Mutex<LockFile>,
}

#[derive(Debug)]
struct LockFile {
    file: File,
    holder: LockHolder,
    /// The daemon stops, so the lock file names no socket any more.
    is_stopping: bool,
}

impl InstanceLock {
    /// Acquires the locks of `home`. Fails with `already_exists` if another daemon holds one of them.
    pub fn acquire(home: &Path) -> Result<Self> {
        let directory = File::open(home).map_err(|e| Error::io(format_args!("cannot open {}", home.display()), &e))?;
        match try_lock(&directory) {
            Ok(true) => {}
            Ok(false) => return Err(already_running(home)),
            // The file system cannot lock directories (NFS, for example): only the lock file is left.
            Err(_) => {}
        }
        let path = home.join(LOCK_FILE);
        let failed = |e: &io::Error| Error::io(format_args!("cannot lock {}", path.display()), e);
        let mut file = open_lock_file(&path).map_err(|e| failed(&e))?;
        if !try_lock(&file).map_err(|e| failed(&e))? {
            return Err(already_running(home));
        }
        let holder = LockHolder { pid: Some(std::process::id()), ..LockHolder::default() };
        write_holder(&mut file, &holder).map_err(|e| failed(&e))?;
        Ok(Self {
            home: home.to_owned(),
            directory,
            lock_file: Mutex::new(LockFile { file, holder, is_stopping: false }),
        })
    }

    /// Writes into the lock file that the daemon listens at `socket`, and `asked` if that is the path it was told to
    /// use instead.
    pub fn record_socket(&self, socket: &Path, asked: &Path) {
        let mut held = self.lock_file.lock();
        if held.is_stopping {
            return;
        }
        held.holder.socket = Some(socket.to_owned());
        held.holder.requested_socket = (socket != asked).then(|| asked.to_owned());
        held.rewrite();
    }

    /// Removes the socket from the lock file, so that clients that look for the daemon see that it is stopping.
    pub fn clear_socket(&self) {
        let mut held = self.lock_file.lock();
        held.is_stopping = true;
        (held.holder.socket, held.holder.requested_socket) = (None, None);
        held.rewrite();
    }

    /// Puts the lock file back if it was removed or replaced; returns true if it did.
    ///
    /// # Errors
    /// `storage_failed`: the home was moved or removed, or another daemon holds the new lock file; this daemon must not
    /// acknowledge anything any more. Other kinds: the lock file cannot be put back; the lock on the home still holds.
    pub fn check_and_restore(&self) -> Result<bool> {
        let fatal = |what: String| Error::new(ErrorKind::StorageFailed, what);
        let misplaced = |what: String| Error { misplaced: true, ..fatal(what) };
        match self.home.metadata() {
            Ok(found)
                if self
                    .directory
                    .metadata()
                    .is_ok_and(|ours| FileIdentity::from_metadata(&ours) == FileIdentity::from_metadata(&found)) => {}
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Ok(false),
            _ => {
                let what = format!("{} was moved or removed while the daemon was running", self.home.display());
                return Err(misplaced(what).hint("restore it and restart the daemon"));
            }
        }
        let path = self.home.join(LOCK_FILE);
        let mut held = self.lock_file.lock();
        let found = path.metadata().ok().map(|found| FileIdentity::from_metadata(&found));
        if found.is_some() && found == held.file.metadata().ok().map(|ours| FileIdentity::from_metadata(&ours)) {
            return Ok(false);
        }
        let failed =
            |e: io::Error| Error { kind: ErrorKind::Internal, ..Error::io("cannot restore the lock file", &e) };
        create_run_dir(&self.home.join("run")).map_err(failed)?;
        let mut file = open_lock_file(&path).map_err(failed)?;
        if !try_lock(&file).map_err(failed)? {
            let other = LockHolder::read(&self.home).unwrap_or_default();
            return Err(fatal(other.describe(&self.home)).hint("stop it, and restart the daemon"));
        }
        write_holder(&mut file, &held.holder).map_err(failed)?;
        held.file = file;
        Ok(true)
    }
}

impl LockFile {
    fn rewrite(&mut self) {
        if let Err(error) = write_holder(&mut self.file, &self.holder) {
            tracing::warn!(%error, "cannot write the lock file: clients with other settings cannot find the socket");
        }
    }
}

fn open_lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Creates `run/` again, but nothing above it, since a home that was removed must not be created again.
fn create_run_dir(run: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(run) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn write_holder(file: &mut File, holder: &LockHolder) -> io::Result<()> {
    let text = holder.to_text();
    // Over the old text, so that a reader never finds the file empty.
    file.rewind()?;
    file.write_all(&text)?;
    file.set_len(text.len() as u64)
}

/// Tries to acquire the lock; false if another daemon holds it. A client that checks for a daemon holds it shared for a
/// moment, so a shared lock is tried again.
fn try_lock(file: &File) -> io::Result<bool> {
    for _ in 0..LOCK_ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        match file.try_lock_shared() {
            Ok(()) => file.unlock()?,
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        std::thread::sleep(LOCK_RETRY_INTERVAL);
    }
    Ok(false)
}

fn already_running(home: &Path) -> Error {
    let holder = LockHolder::read(home).unwrap_or_default();
    let stop = match &holder.socket {
        Some(socket) => format!("use it, or stop it: chorusctl --socket {} daemon stop", socket.display()),
        None => "use it, or stop it: chorusctl daemon stop".to_owned(),
    };
    Error::new(ErrorKind::AlreadyExists, holder.describe(home)).hint(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> io::Result<tempfile::TempDir> {
        let home = tempfile::tempdir()?;
        std::fs::create_dir(home.path().join("run"))?;
        Ok(home)
    }

    fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
        result.err().map(|failure| failure.kind)
    }

    #[test]
    fn a_home_is_locked_once_whatever_becomes_of_the_lock_file() -> io::Result<()> {
        let home = home()?;
        let lock = InstanceLock::acquire(home.path()).map_err(io::Error::other)?;
        let again = || kind(InstanceLock::acquire(home.path()));
        assert_eq!(again(), Some(ErrorKind::AlreadyExists));
        std::fs::remove_file(home.path().join(LOCK_FILE))?;
        assert_eq!(again(), Some(ErrorKind::AlreadyExists));
        std::fs::remove_dir_all(home.path().join("run"))?;
        assert_eq!(again(), Some(ErrorKind::AlreadyExists));
        drop(lock);
        std::fs::create_dir(home.path().join("run"))?;
        assert_eq!(again(), None);
        Ok(())
    }

    #[test]
    fn a_daemon_that_locks_the_file_alone_is_seen() -> io::Result<()> {
        let home = home()?;
        let earlier = open_lock_file(&home.path().join(LOCK_FILE))?;
        earlier.lock()?;
        assert_eq!(kind(InstanceLock::acquire(home.path())), Some(ErrorKind::AlreadyExists));
        Ok(())
    }

    #[test]
    fn a_lock_file_that_is_gone_is_put_back_with_what_it_said() -> io::Result<()> {
        let home = home()?;
        let lock = InstanceLock::acquire(home.path()).map_err(io::Error::other)?;
        lock.record_socket(Path::new("/h/s"), Path::new("/gone/s"));
        assert!(!lock.check_and_restore().map_err(io::Error::other)?);
        let before = LockHolder::read(home.path())?;
        assert_eq!(before.requested_socket.as_deref(), Some(Path::new("/gone/s")));
        std::fs::remove_dir_all(home.path().join("run"))?;
        assert!(lock.check_and_restore().map_err(io::Error::other)?);
        assert_eq!(LockHolder::read(home.path())?, before);
        let file = open_lock_file(&home.path().join(LOCK_FILE))?;
        assert!(matches!(file.try_lock(), Err(TryLockError::WouldBlock)));
        Ok(())
    }

    #[test]
    fn a_lock_file_that_another_daemon_holds_ends_this_one() -> io::Result<()> {
        let home = home()?;
        let lock = InstanceLock::acquire(home.path()).map_err(io::Error::other)?;
        std::fs::remove_file(home.path().join(LOCK_FILE))?;
        let earlier = open_lock_file(&home.path().join(LOCK_FILE))?;
        earlier.lock()?;
        assert_eq!(kind(lock.check_and_restore()), Some(ErrorKind::StorageFailed));
        Ok(())
    }

    #[test]
    fn a_home_that_was_moved_is_not_made_again() -> io::Result<()> {
        let outside = tempfile::tempdir()?;
        let home = outside.path().join("home");
        std::fs::create_dir_all(home.join("run"))?;
        let lock = InstanceLock::acquire(&home).map_err(io::Error::other)?;
        std::fs::rename(&home, outside.path().join("moved"))?;
        assert_eq!(kind(lock.check_and_restore()), Some(ErrorKind::StorageFailed));
        assert!(!home.exists());
        Ok(())
    }
}
