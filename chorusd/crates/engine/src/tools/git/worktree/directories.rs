//! Directories and files below the repository, which commands of the workspace can replace at any time. No symbolic link is
//! followed.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use chorus_base::private_fs::TEMPORARY_PREFIX;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, renameat, unlinkat};
use rustix::io::Errno;
use uuid::Uuid;

use crate::tools::git::GitResult;

const OPEN_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Limit on the bytes that are read of a file.
const MAX_FILE_LEN: u64 = 16 << 20;

/// Creates the directory `below` in `root` with its parents, and returns its path. Blocks.
pub(super) fn create_below(root: &Path, below: &str) -> GitResult<PathBuf> {
    let path = root.join(below.trim_end_matches('/'));
    let failed = |e: Errno| match e {
        Errno::LOOP | Errno::NOTDIR => {
            format!("{} is not a directory, or a part of its path is a link", path.display())
        }
        e => format!("{}: {}", path.display(), io::Error::from(e)),
    };
    let mut directory = open(root, OPEN_FLAGS, Mode::empty()).map_err(failed)?;
    for part in below.split('/').filter(|part| !part.is_empty()) {
        directory = open_or_create(&directory, part).map_err(failed)?;
    }
    Ok(path)
}

fn open_or_create(directory: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    match openat(directory, name, OPEN_FLAGS, Mode::empty()) {
        Err(Errno::NOENT) => match mkdirat(directory.as_fd(), name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => openat(directory, name, OPEN_FLAGS, Mode::empty()),
            Err(e) => Err(e),
        },
        opened => opened,
    }
}

/// Creates a file in `root` unless it has something with this name. Blocks.
pub(super) fn create_file(root: &Path, name: &str, text: &str) -> GitResult<()> {
    let failed = |e: io::Error| format!("{}: {e}", root.join(name).display());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = open(root, OPEN_FLAGS, Mode::empty());
    match opened.and_then(|root| openat(root, name, flags, Mode::from_raw_mode(0o666))) {
        Ok(file) => File::from(file).write_all(text.as_bytes()).map_err(failed),
        Err(Errno::EXIST) => Ok(()),
        Err(e) => Err(failed(e.into())),
    }
}

/// Opens the directory `below` in `root`.
fn open_below(root: &Path, below: &str) -> rustix::io::Result<OwnedFd> {
    let mut directory = open(root, OPEN_FLAGS, Mode::empty())?;
    for part in below.split('/').filter(|part| !part.is_empty()) {
        directory = openat(&directory, part, OPEN_FLAGS, Mode::empty())?;
    }
    Ok(directory)
}

/// Gives the file `name` of the directory `below` in `root` this text, or creates it. A link in its place is replaced itself.
/// A kill may leave a temporary file in the directory `aside` in `root`. Blocks.
pub(super) fn replace_file(root: &Path, aside: &str, below: &str, name: &str, text: &str) -> GitResult<()> {
    if read_below(root, below, name).as_deref() == Some(text) {
        return Ok(());
    }
    let path = root.join(below).join(name);
    let failed = |e: io::Error| format!("{}: {e}", path.display());
    let opened = open_below(root, below).and_then(|directory| Ok((directory, open_below(root, aside)?)));
    let (directory, aside) = opened.map_err(|e| failed(e.into()))?;
    let temporary = format!("{TEMPORARY_PREFIX}{}", Uuid::new_v4());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&aside, &*temporary, flags, Mode::from_raw_mode(0o666)).map_err(|e| failed(e.into()))?;
    let written = File::from(file).write_all(text.as_bytes());
    let placed = written.and_then(|()| Ok(renameat(&aside, &*temporary, &directory, name)?));
    placed.map_err(|e| {
        let _ = unlinkat(&aside, &*temporary, AtFlags::empty());
        failed(e)
    })
}

/// Lists the directories in `root`, and those of `files` that it has. Blocks.
pub(super) fn list_parts(root: &Path, files: &[&str]) -> GitResult<Vec<PathBuf>> {
    let failed = |e: io::Error| format!("{}: {e}", root.display());
    let mut parts = Vec::new();
    for entry in fs::read_dir(root).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        let is_wanted_file = || files.iter().any(|file| entry.file_name() == *file);
        if kind.is_dir() || (kind.is_file() && is_wanted_file()) {
            parts.push(entry.path());
        }
    }
    Ok(parts)
}

/// Returns the text of the file `name` of the directory `below` in `root`; `None` if it has none. Blocks.
pub(super) fn read_below(root: &Path, below: &str, name: &str) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let directory = open_below(root, below).ok()?;
    let file = File::from(openat(&directory, name, flags, Mode::empty()).ok()?);
    let mut bytes = Vec::new();
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    file.take(MAX_FILE_LEN).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_created_or_read_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (root, other) = (folder.path().join("git"), folder.path().join("other"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&other).unwrap();
        for _ in 0..2 {
            assert_eq!(create_below(&root, "refs/heads/a/").unwrap(), root.join("refs/heads/a"));
        }
        assert!(root.join("refs/heads/a").is_dir());
        symlink(&other, root.join("logs")).unwrap();
        fs::write(root.join("file"), "text").unwrap();
        for below in ["logs", "logs/refs", "file/refs"] {
            assert!(create_below(&root, below).unwrap_err().contains("not a directory"), "{below}");
        }
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
        fs::write(other.join("secret"), "secret").unwrap();
        let names = || {
            let mut parts = list_parts(&root, &["file", "packed-refs"]).unwrap();
            parts.sort();
            parts
        };
        assert_eq!(names(), ["file", "refs"].map(|name| root.join(name)));
        create_file(&root, "packed-refs", "none\n").unwrap();
        assert_eq!(names(), ["file", "packed-refs", "refs"].map(|name| root.join(name)));
        create_file(&root, "packed-refs", "others\n").unwrap();
        let text = |below: &str, name: &str| read_below(&root, below, name);
        assert_eq!(text("", "packed-refs").as_deref(), Some("none\n"));
        fs::remove_file(root.join("packed-refs")).unwrap();
        symlink(other.join("new"), root.join("packed-refs")).unwrap();
        create_file(&root, "packed-refs", "x").unwrap();
        assert!(!other.join("new").exists());
        fs::remove_file(root.join("packed-refs")).unwrap();
        symlink(other.join("secret"), root.join("packed-refs")).unwrap();
        fs::write(other.join("refs"), "secret").unwrap();
        assert_eq!((text("", "packed-refs"), text("logs", "refs")), (None, None));
        assert_eq!((text("", "refs"), text("", "none"), text("", "file")), (None, None, Some("text".into())));
        symlink(other.join("secret"), root.join("refs/link")).unwrap();
        replace_file(&root, "", "refs", "link", "new").unwrap();
        assert_eq!(fs::read_to_string(other.join("secret")).unwrap(), "secret");
        assert_eq!(text("refs", "link").as_deref(), Some("new"));
        assert!(replace_file(&root, "", "logs", "x", "new").is_err(), "logs is a link");
        assert!(replace_file(&root, "logs", "refs", "link", "other").is_err(), "logs is a link");
        assert!(replace_file(&root, "", "", "refs", "new").is_err(), "refs is a directory");
        assert_eq!(fs::read_dir(&root).unwrap().count(), 4, "nothing temporary is left");
    }
}
