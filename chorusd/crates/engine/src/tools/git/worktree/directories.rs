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

/// Replaces the file `name` of the directory `below` in `root`, or creates it. A link in its place is replaced itself. Blocks.
pub(super) fn replace_file(root: &Path, below: &str, name: &str, text: &str) -> GitResult<()> {
    let path = root.join(below).join(name);
    let failed = |e: io::Error| format!("{}: {e}", path.display());
    let mut directory = open(root, OPEN_FLAGS, Mode::empty()).map_err(|e| failed(e.into()))?;
    for part in below.split('/').filter(|part| !part.is_empty()) {
        directory = openat(&directory, part, OPEN_FLAGS, Mode::empty()).map_err(|e| failed(e.into()))?;
    }
    let temporary = format!("{TEMPORARY_PREFIX}{}", Uuid::new_v4());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&directory, &*temporary, flags, Mode::from_raw_mode(0o666)).map_err(|e| failed(e.into()))?;
    let written = File::from(file).write_all(text.as_bytes());
    let placed = written.and_then(|()| Ok(renameat(&directory, &*temporary, &directory, name)?));
    placed.map_err(|e| {
        let _ = unlinkat(&directory, &*temporary, AtFlags::empty());
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

/// Returns the text of a file in `root`, empty if it has none. Blocks.
pub(super) fn read_below(root: &Path, name: &str) -> String {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = open(root, OPEN_FLAGS, Mode::empty()).and_then(|root| openat(root, name, flags, Mode::empty()));
    let Ok(file) = opened.map(File::from) else { return String::new() };
    let mut bytes = Vec::new();
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    match is_file.then(|| file.take(MAX_FILE_LEN).read_to_end(&mut bytes)) {
        Some(Ok(_)) => String::from_utf8_lossy(&bytes).into_owned(),
        _ => String::new(),
    }
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
        assert_eq!(read_below(&root, "packed-refs"), "none\n");
        fs::remove_file(root.join("packed-refs")).unwrap();
        symlink(other.join("new"), root.join("packed-refs")).unwrap();
        create_file(&root, "packed-refs", "x").unwrap();
        assert!(!other.join("new").exists());
        fs::remove_file(root.join("packed-refs")).unwrap();
        symlink(other.join("secret"), root.join("packed-refs")).unwrap();
        assert_eq!((read_below(&root, "packed-refs"), read_below(&root, "file")), (String::new(), "text".into()));
        assert_eq!((read_below(&root, "refs"), read_below(&root, "none")), (String::new(), String::new()));
        symlink(other.join("secret"), root.join("refs/link")).unwrap();
        replace_file(&root, "refs", "link", "new").unwrap();
        assert_eq!(fs::read_to_string(other.join("secret")).unwrap(), "secret");
        assert_eq!(read_below(&root.join("refs"), "link"), "new");
        assert!(replace_file(&root, "logs", "x", "new").is_err(), "logs is a link");
        assert!(replace_file(&root, "", "refs", "new").is_err(), "refs is a directory");
        assert_eq!(fs::read_dir(&root).unwrap().count(), 4, "nothing temporary is left");
    }
}
