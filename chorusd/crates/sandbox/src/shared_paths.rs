//! Checks that a shared path is mounted as it was planned, and not what another command put in its place meanwhile.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};

use super::protocol::PathIdentity;

/// Flags for each part of a path. A link at its end is opened itself.
const OPEN_FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Identifies the directory or file at an absolute path.
///
/// # Errors
/// There is none, or a part of its path is a symbolic link.
pub(crate) fn identify(path: &Path) -> io::Result<PathIdentity> {
    let failed = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    let mut opened = open("/", OPEN_FLAGS, Mode::empty())?;
    for part in path.components().filter(|part| !matches!(part, Component::RootDir | Component::CurDir)) {
        let next = openat(&opened, part.as_os_str(), OPEN_FLAGS, Mode::empty());
        opened = next.map_err(|e| failed(e.into()))?;
    }
    let status = fstat(&opened)?;
    match FileType::from_raw_mode(status.st_mode) {
        FileType::Directory | FileType::RegularFile => {}
        _ => return Err(failed(io::Error::other("is a link or a special file"))),
    }
    Ok(PathIdentity { path: path.to_owned(), device: status.st_dev, inode: status.st_ino })
}

/// Checks in the command's root file system that what is there is what was planned.
pub(crate) fn verify(identities: &[PathIdentity]) -> Result<(), String> {
    let is_same = |planned: &PathIdentity| {
        fs::symlink_metadata(&planned.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == (planned.device, planned.inode))
    };
    match identities.iter().find(|planned| !is_same(planned)) {
        Some(replaced) => Err(format!("{} was replaced while the command started", replaced.path.display())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_is_refused_and_what_was_replaced_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (inner, file, link) = (root.join("a/b"), root.join("a/f"), root.join("link"));
        fs::create_dir_all(&inner).unwrap();
        fs::write(&file, "x").unwrap();
        symlink(root.join("a"), &link).unwrap();
        for wrong in [&link, &link.join("b"), &link.join("f"), &root.join("c")] {
            assert!(identify(wrong).is_err(), "{}", wrong.display());
        }
        let planned = [identify(&inner).unwrap(), identify(&file).unwrap()];
        assert_eq!(verify(&planned), Ok(()));
        fs::rename(&file, root.join("f")).unwrap();
        assert!(verify(&planned).is_err());
        symlink(root.join("f"), &file).unwrap();
        assert!(verify(&planned).is_err(), "a link to the same");
        fs::rename(root.join("f"), &file).unwrap();
        assert_eq!(verify(&planned), Ok(()));
        fs::rename(root.join("a"), root.join("c")).unwrap();
        fs::create_dir_all(&inner).unwrap();
        assert!(verify(&planned[..1]).is_err(), "another directory");
    }
}
