//! An open workspace directory. Every path is walked from it, component by component, and no symbolic link is followed.
//! Thus a walk never leaves the workspace, whatever is renamed or linked meanwhile.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use chorus_base::closest_match;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::WorkspacePath;

/// Limit on the names examined to suggest a similar one.
const MAX_SUGGESTION_NAMES: usize = 1000;

/// Flags for everything that is opened: do not wait, and do not follow a link.
const OPEN_FLAGS: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// An agent's workspace.
#[derive(Debug)]
pub struct Workspace {
    root: OwnedFd,
}

/// An opened file or folder.
#[derive(Debug)]
pub enum OpenEntry {
    File { file: File, length: u64 },
    Folder(OwnedFd),
}

impl Workspace {
    /// Opens the workspace directory.
    pub fn open(path: &Path) -> Result<Self, String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty());
        root.map(|root| Self { root }).map_err(|e| describe_error("the workspace", e))
    }

    /// Opens the file or folder at a path.
    pub fn open_entry(&self, place: &WorkspacePath) -> Result<OpenEntry, String> {
        let Some((name, folders)) = place.components().split_last() else {
            return Ok(OpenEntry::Folder(self.walk_folders(&[], |_, _| Ok(None))?));
        };
        let folder = self.walk_folders(folders, |_, _| Ok(None))?;
        let wrong = |e| describe_name_error(folder.as_fd(), name, &place.to_string(), e);
        let kind = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(wrong)?;
        if FileType::from_raw_mode(kind.st_mode) == FileType::Directory {
            return Ok(OpenEntry::Folder(open_folder(folder.as_fd(), name).map_err(wrong)?));
        }
        ensure_regular(FileType::from_raw_mode(kind.st_mode), folder.as_fd(), name, &place.to_string())?;
        let opened = openat(&folder, name, OPEN_FLAGS | OFlags::RDONLY, Mode::empty()).map_err(wrong)?;
        // The file may have been replaced between `statat` and `openat`.
        let status = fstat(&opened).map_err(wrong)?;
        ensure_regular(FileType::from_raw_mode(status.st_mode), folder.as_fd(), name, &place.to_string())?;
        Ok(OpenEntry::File { file: opened.into(), length: u64::try_from(status.st_size).unwrap_or(0) })
    }

    /// Opens the folder at these components. `missing` may create a folder that does not exist, which is then opened.
    pub(super) fn walk_folders(
        &self,
        names: &[String],
        mut missing: impl FnMut(BorrowedFd<'_>, &str) -> Result<Option<()>, String>,
    ) -> Result<OwnedFd, String> {
        let so_far = |at: usize| names[..=at].join("/");
        let mut folder = open_folder(self.root.as_fd(), ".").map_err(|e| describe_error("the workspace", e))?;
        for (at, name) in names.iter().enumerate() {
            let mut next = open_folder(folder.as_fd(), name);
            if next.as_ref().err() == Some(&Errno::NOENT) && missing(folder.as_fd(), name)?.is_some() {
                next = open_folder(folder.as_fd(), name);
            }
            folder = next.map_err(|e| match e {
                Errno::NOTDIR if !is_link(folder.as_fd(), name) => format!("{} is not a folder", so_far(at)),
                e => describe_name_error(folder.as_fd(), name, &so_far(at), e),
            })?;
        }
        Ok(folder)
    }
}

pub(super) fn open_folder(folder: BorrowedFd<'_>, name: &str) -> rustix::io::Result<OwnedFd> {
    openat(folder, name, OPEN_FLAGS | OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
}

/// Returns an error for anything but a regular file, such as a link (with its target), a device or a pipe.
pub(super) fn ensure_regular(kind: FileType, folder: BorrowedFd<'_>, name: &str, path: &str) -> Result<(), String> {
    let what = match kind {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a folder",
        FileType::Symlink => return Err(describe_link(folder, name, path)),
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "not a regular file",
    };
    Err(format!("{path} is {what}; this tool needs a file"))
}

/// Describes a system error about a name, for the model.
pub(super) fn describe_name_error(folder: BorrowedFd<'_>, name: &str, path: &str, error: Errno) -> String {
    match error {
        Errno::NOENT => format!("{path} does not exist{}", suggest_name(folder, name)),
        Errno::LOOP | Errno::NOTDIR if is_link(folder, name) => describe_link(folder, name, path),
        error => describe_error(path, error),
    }
}

/// Describes a system error that does not concern the last name.
fn describe_error(path: &str, error: Errno) -> String {
    match error {
        Errno::NOTDIR => format!("{path} is not a folder"),
        Errno::NAMETOOLONG => format!("{path}: a name is too long (at most 255 bytes)"),
        Errno::NOSPC | Errno::DQUOT => format!("{path}: the disk is full; nothing was changed"),
        Errno::MFILE | Errno::NFILE => {
            format!("{path}: too many files are open on this machine; try again in a moment")
        }
        error => format!("{path}: {error}"),
    }
}

fn is_link(folder: BorrowedFd<'_>, name: &str) -> bool {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Symlink)
}

fn describe_link(folder: BorrowedFd<'_>, name: &str, path: &str) -> String {
    let target = readlinkat(folder, name, Vec::new()).map(|target| target.to_string_lossy().into_owned());
    let target = target.map_or_else(|_| String::new(), |target| format!(" to {target:?}"));
    format!(
        "{path} is a symbolic link{target}, which file tools do not follow; use its target, if that is in the \
         workspace"
    )
}

/// Returns a suggestion of a similar name, which follows the name that does not exist.
fn suggest_name(folder: BorrowedFd<'_>, name: &str) -> String {
    let Ok(entries) = open_folder(folder, ".").and_then(Dir::new) else { return String::new() };
    let names: Vec<String> = entries
        .take(MAX_SUGGESTION_NAMES)
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !matches!(&**name, "." | ".." | ".git"))
        .collect();
    closest_match(name, names.iter().map(String::as_str))
        .map_or_else(String::new, |near| format!("; did you mean {near:?}?"))
}
