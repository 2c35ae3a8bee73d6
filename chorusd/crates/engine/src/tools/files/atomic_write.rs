//! Writes files atomically, with one writer per file at a time.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use chorus_catalog::FileHash;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, fstat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::versions::{HashingReader, RecordedWrite, hash_bytes};
use super::workspace::{describe_name_error, ensure_regular, open_folder};
use super::{FileAccess, Workspace, WorkspacePath, temp_names};

/// Limit on the size of a file that is edited in memory, in bytes.
const MAX_EDITED_LEN: u64 = 16 << 20;

/// With this file, `objects/` and `refs/` a folder is a git repository, whose `config` names programs to run.
const HEAD_FILE: &str = "HEAD";

/// A change to one file.
#[derive(Debug)]
pub struct Edit<'a> {
    pub workspace: &'a Workspace,
    pub path: &'a WorkspacePath,
    pub access: &'a FileAccess<'a>,
}

/// How much of the old content an edit may destroy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditKind {
    /// All of it.
    Replace,
    /// A part of it, which the caller named.
    Change,
    /// None.
    Append,
}

/// A file before the change.
#[derive(Debug)]
pub(super) struct OldFile {
    /// The content; empty if it was not read.
    pub bytes: Vec<u8>,
    pub length: u64,
    mode: Mode,
}

/// Folders created for a file, each with a handle of its parent.
#[derive(Debug, Default)]
struct CreatedDirs(Vec<(OwnedFd, String)>);

impl CreatedDirs {
    /// Removes the folders again, unless something was put into them.
    fn remove_dirs(self) {
        for (folder, name) in self.0.into_iter().rev() {
            let _ = unlinkat(&folder, name, AtFlags::REMOVEDIR);
        }
    }
}

impl Edit<'_> {
    /// Replaces the file with the result of `change`, which is passed `None` if there is no file, and the content unless
    /// all of it is replaced. Creates missing folders. Blocks.
    pub(super) async fn run<T>(
        &self,
        kind: EditKind,
        change: impl FnOnce(Option<&OldFile>) -> Result<(Vec<u8>, T), String>,
    ) -> Result<T, String> {
        let (folders, name) = self.path.split_file()?;
        if name.eq_ignore_ascii_case(HEAD_FILE) {
            return Err(format!(
                "{}: a file with this name could turn its folder into a git repository; use another name",
                self.path
            ));
        }
        let mut made = CreatedDirs::default();
        let folder = self.workspace.walk_folders(folders, |folder, name| create_dir(folder, name, &mut made).map(Some));
        let done = match folder {
            Ok(folder) => self.write_locked(&folder, name, kind, change).await,
            Err(wrong) => Err(wrong),
        };
        if done.is_err() {
            made.remove_dirs();
        }
        done
    }

    async fn write_locked<T>(
        &self,
        folder: &OwnedFd,
        name: &str,
        kind: EditKind,
        change: impl FnOnce(Option<&OldFile>) -> Result<(Vec<u8>, T), String>,
    ) -> Result<T, String> {
        self.ensure_no_repository()?;
        let path = self.path.to_string();
        let wrong = |e| describe_name_error(folder.as_fd(), name, &path, e);
        let _lock = self.access.lock(folder, name).await.map_err(wrong)?;
        temp_names::remove_stale(folder.as_fd());
        let old = read_old_file(folder.as_fd(), name, &path, kind != EditKind::Replace)?;
        let old_hash = || match (&old, kind) {
            (None, _) => Ok(None),
            (Some(_), EditKind::Replace) => hash_file(folder.as_fd(), name, &path).map(Some),
            (Some(old), _) => Ok(Some(hash_bytes(&old.bytes))),
        };
        let begun = match self.access.conversation {
            Some(files) => Some(files.begin_write(&path, kind, old_hash).await?),
            None => None,
        };
        let (bytes, told) = change(old.as_ref())?;
        let recorded = match begun {
            Some(begun) => Some(begun.record(&bytes).await?),
            None => None,
        };
        let mode = old.map_or(Mode::from_raw_mode(0o644), |old| old.mode);
        replace_atomically(folder, name, &bytes, mode).map_err(wrong)?;
        recorded.into_iter().for_each(RecordedWrite::finish);
        Ok(told)
    }

    /// Refuses to write in or below a folder that git would take for a bare repository.
    fn ensure_no_repository(&self) -> Result<(), String> {
        let (folders, _) = self.path.split_file()?;
        for depth in 0..=folders.len() {
            let folder = self.workspace.walk_folders(&folders[..depth], |_, _| Ok(None))?;
            let has = |name: &str| statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
            if has(HEAD_FILE) && (has("commondir") || (has("objects") && has("refs"))) {
                let at = if depth == 0 { ".".into() } else { folders[..depth].join("/") };
                return Err(format!("{at} is a bare git repository; file tools cannot write to it"));
            }
        }
        Ok(())
    }
}

fn create_dir(folder: BorrowedFd<'_>, name: &str, made: &mut CreatedDirs) -> Result<(), String> {
    let wrong = |e| describe_name_error(folder, name, name, e);
    match mkdirat(folder, name, Mode::from_raw_mode(0o700)) {
        Ok(()) => {}
        // Another process created it first.
        Err(Errno::EXIST) => return Ok(()),
        Err(e) => return Err(wrong(e)),
    }
    made.0.push((open_folder(folder, ".").map_err(wrong)?, name.to_owned()));
    // The daemon's umask is meant for its own files.
    let new = open_folder(folder, name).map_err(wrong)?;
    fchmod(&new, Mode::from_raw_mode(0o755)).map_err(wrong)
}

fn read_old_file(folder: BorrowedFd<'_>, name: &str, path: &str, reads: bool) -> Result<Option<OldFile>, String> {
    let wrong = |e| describe_name_error(folder, name, path, e);
    let status = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(status) => status,
        Err(Errno::NOENT) => return Ok(None),
        Err(e) => return Err(wrong(e)),
    };
    ensure_regular(FileType::from_raw_mode(status.st_mode), folder, name, path)?;
    let mode = Mode::from_raw_mode(status.st_mode & 0o777);
    if !mode.contains(Mode::WUSR) {
        return Err(format!("{path} is read-only (mode {:o})", mode.bits()));
    }
    let length = u64::try_from(status.st_size).unwrap_or(0);
    let mut bytes = Vec::new();
    if reads {
        let read = open_regular(folder, name, path)?.take(MAX_EDITED_LEN + 1).read_to_end(&mut bytes);
        read.map_err(|e| format!("cannot read {path}: {e}"))?;
        if bytes.len() as u64 > MAX_EDITED_LEN {
            return Err(format!("{path} has {length} bytes; the limit for file tools is {MAX_EDITED_LEN}; use bash"));
        }
    }
    Ok(Some(OldFile { bytes, length, mode }))
}

fn hash_file(folder: BorrowedFd<'_>, name: &str, path: &str) -> Result<FileHash, String> {
    let reader = HashingReader::new(open_regular(folder, name, path)?);
    reader.finish().map_err(|e| format!("cannot read {path}: {e}"))
}

fn open_regular(folder: BorrowedFd<'_>, name: &str, path: &str) -> Result<File, String> {
    let wrong = |e| describe_name_error(folder, name, path, e);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let opened = openat(folder, name, flags, Mode::empty()).map_err(wrong)?;
    // The file may have been replaced since it was examined.
    ensure_regular(FileType::from_raw_mode(fstat(&opened).map_err(wrong)?.st_mode), folder, name, path)?;
    Ok(opened.into())
}

/// Writes a temporary file, syncs it and renames it: a crash leaves the old file or the new one.
fn replace_atomically(folder: &OwnedFd, name: &str, bytes: &[u8], mode: Mode) -> Result<(), Errno> {
    let beside = temp_names::new_name();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, &beside, flags, Mode::from_raw_mode(0o600))?;
    let named = write_contents(file.into(), bytes, mode).and_then(|()| renameat(folder, &beside, folder, name));
    if named.is_err() {
        let _ = unlinkat(folder, &beside, AtFlags::empty());
    }
    named
}

fn write_contents(mut file: File, bytes: &[u8], mode: Mode) -> Result<(), Errno> {
    let wrong = |e: std::io::Error| Errno::from_io_error(&e).unwrap_or(Errno::IO);
    file.write_all(bytes).map_err(wrong)?;
    fchmod(&file, mode)?;
    file.sync_data().map_err(wrong)
}
