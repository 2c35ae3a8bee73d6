//! Writes files into a directory; each file appears complete or not at all.

#![expect(clippy::disallowed_types, reason = "the client does without chorus_base")]

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};

use crate::error::Error;

/// Outcome of writing one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    Written,
    /// The file exists with the same content.
    Unchanged,
}

/// A directory for exported files.
#[derive(Debug)]
pub(super) struct OutputDir {
    path: PathBuf,
    /// Subdirectories that are known to exist.
    created: Mutex<HashSet<PathBuf>>,
    /// True while the file system is believed to support O_TMPFILE.
    supports_tmpfile: AtomicBool,
    /// Number of temporary names used so far.
    temp_names_used: AtomicU64,
}

impl OutputDir {
    #[must_use]
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            created: Mutex::default(),
            supports_tmpfile: true.into(),
            temp_names_used: 0.into(),
        }
    }

    /// Writes a file at `path` below the directory, unless it exists with the same content. On an error an existing
    /// file is unchanged.
    pub(super) fn write_file(&self, path: &Path, bytes: &[u8]) -> Result<WriteOutcome, Error> {
        let target = self.path.join(path);
        let failed = |error: &io::Error| Error::for_file(&target.to_string_lossy(), error);
        let there = fs::metadata(&target).ok();
        let alike = there.as_ref().is_some_and(|there| there.is_file() && there.len() == bytes.len() as u64);
        if alike && fs::read(&target).map_err(|e| failed(&e))? == bytes {
            return Ok(WriteOutcome::Unchanged);
        }
        let dir = target.parent().unwrap_or(Path::new("."));
        self.create_dir(dir).map_err(|error| dir_error(dir, &error))?;
        if self.supports_tmpfile.load(Ordering::Relaxed) && there.is_none() {
            match write_unnamed(dir, &target, bytes) {
                Ok(()) => return Ok(WriteOutcome::Written),
                // The name was created meanwhile, or is a dangling link: use a temporary name instead.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // Not every file system supports it; a real error shows below.
                Err(_) => self.supports_tmpfile.store(false, Ordering::Relaxed),
            }
        }
        let number = self.temp_names_used.fetch_add(1, Ordering::Relaxed);
        let temporary = dir.join(format!(".chorus-export-{}-{number}", std::process::id()));
        let written = write_private(&temporary, bytes).and_then(|()| fs::rename(&temporary, &target));
        if let Err(error) = written {
            let _ = fs::remove_file(&temporary);
            return Err(failed(&error));
        }
        Ok(WriteOutcome::Written)
    }

    /// Creates a directory, once.
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut made = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        if !made.contains(dir) {
            // Conversations are private, whatever the mode of the parent directory.
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
            made.insert(dir.to_owned());
        }
        Ok(())
    }
}

/// Returns the error for a directory that cannot be created. If that is refused, it names the first directory above it that exists.
fn dir_error(dir: &Path, error: &io::Error) -> Error {
    let above = dir.ancestors().skip(1).find(|above| above.is_dir());
    match above.filter(|_| error.kind() == io::ErrorKind::PermissionDenied && !dir.exists()) {
        Some(above) => Error::for_file(&above.to_string_lossy(), error)
            .with_context(&format!("cannot create the directory {}", dir.display())),
        None => Error::for_file(&dir.to_string_lossy(), error).with_context("cannot create the directory"),
    }
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(bytes)
}

/// Writes a file without a name, then links it to its name (open(2), O_TMPFILE): about half the work of a rename, and a
/// crash leaves nothing behind.
fn write_unnamed(dir: &Path, target: &Path, bytes: &[u8]) -> io::Result<()> {
    let mode = Mode::RUSR | Mode::WUSR;
    let file = File::from(open(dir, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, mode)?);
    (&file).write_all(bytes)?;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, unnamed, CWD, target, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_once_and_again_when_it_differs() -> Result<(), Error> {
        let failed = |error: io::Error| Error::failed(error.to_string());
        let outside = tempfile::tempdir().map_err(failed)?;
        let folder = OutputDir::new(&outside.path().join("a"));
        let path = Path::new("b/c.json");
        assert_eq!(folder.write_file(path, b"one")?, WriteOutcome::Written);
        assert_eq!(folder.write_file(path, b"one")?, WriteOutcome::Unchanged);
        assert_eq!(folder.write_file(path, b"two")?, WriteOutcome::Written);
        let there = outside.path().join("a/b");
        assert_eq!(fs::read(there.join("c.json")).map_err(failed)?, b"two");
        assert_eq!(fs::read_dir(there).map_err(failed)?.count(), 1, "nothing temporary stays");
        Ok(())
    }
}
