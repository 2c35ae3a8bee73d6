//! File operations on private directories and files: create, replace, move, restore, remove.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use uuid::Uuid;

use crate::error::SyncError;

/// Name prefix of a file that is being written.
pub const TEMPORARY_PREFIX: &str = ".new-";

/// Creates `dir` and its missing parents, each with mode 0700.
pub fn create_private(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Replaces the file `path` with `bytes` (mode 0600) atomically: a reader sees the old file or the new one.
///
/// # Errors
/// The old file is untouched if any step before the rename fails.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    let dir = path.parent().unwrap_or(Path::new("."));
    let temporary = dir.join(format!("{TEMPORARY_PREFIX}{}", Uuid::new_v4()));
    let written = (|| {
        let mut new = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        new.write_all(bytes)?;
        sync(&new)?;
        fs::rename(&temporary, path)?;
        sync_dir(dir)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Contents and modification time of a text file, so that a restored file looks as if it had never changed.
#[derive(Debug, Clone)]
pub struct FileSnapshot {
    path: PathBuf,
    pub text: String,
    modified: SystemTime,
}

impl FileSnapshot {
    /// Reads the file.
    pub fn read(path: PathBuf) -> io::Result<Self> {
        Ok(Self { text: fs::read_to_string(&path)?, modified: fs::metadata(&path)?.modified()?, path })
    }

    /// Restores the file if its modification time has changed.
    pub fn restore(&self) -> io::Result<()> {
        if fs::metadata(&self.path).is_ok_and(|now| now.modified().is_ok_and(|at| at == self.modified)) {
            return Ok(());
        }
        write_private(&self.path, self.text.as_bytes())?;
        File::options().append(true).open(&self.path)?.set_modified(self.modified)
    }
}

/// Moves a directory to a path that must not exist, and makes that durable. If the sync fails, moves it back.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if `to` exists.
pub fn move_dir(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?;
    let synced = [from.parent(), to.parent()].into_iter().flatten().try_for_each(sync_dir);
    if synced.is_err() {
        let _ = renameat_with(CWD, to, CWD, from, RenameFlags::NOREPLACE);
    }
    synced
}

/// Deletes a directory recursively, including read-only subdirectories, as many package caches have them. On an error
/// the rest stays.
pub fn remove_dir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(dir);
            fs::remove_dir_all(dir)
        }
        other => other,
    }
}

/// Makes the directories below `dir` writable, ignoring errors: the deletion that follows reports them.
fn make_writable(dir: &Path) {
    let _ = fs::set_permissions(dir, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_writable(&entry.path());
        }
    }
}

/// Syncs a directory, which makes its entries durable.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    sync(&File::open(dir)?)
}

/// Syncs a file.
///
/// # Errors
/// [`SyncError`], except for a lack of space, which leaves no doubt about the state: the caller gives the file up.
pub fn sync(file: &File) -> io::Result<()> {
    map_sync_error(file.sync_all())
}

/// Wraps the error of a sync in [`SyncError`], except for a lack of space.
pub fn map_sync_error(result: io::Result<()>) -> io::Result<()> {
    result.map_err(|e| match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => e,
        _ => io::Error::other(SyncError(e)),
    })
}
