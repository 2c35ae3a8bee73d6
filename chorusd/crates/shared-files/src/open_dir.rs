//! The directory of an agent, opened once: what is read and written is beneath it, also while it moves, and no symbolic link
//! is followed.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use chorus_base::private_fs::{TEMPORARY_PREFIX, sync};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags, fstat, mkdirat, openat, openat2, renameat, renameat_with,
    unlinkat,
};
use rustix::io::Errno;
use rustix::path::Arg;
use uuid::Uuid;

use crate::listing::stamp;

const FOLDER_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// An open directory of an agent.
#[derive(Debug)]
pub(crate) struct OpenDir(File);

/// Opens a folder in another one.
pub(crate) fn open_folder(parent: &File, name: impl Arg) -> io::Result<File> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(parent, name, FOLDER_FLAGS, Mode::empty(), resolve)?.into())
}

impl OpenDir {
    /// Opens the directory; `None` if it does not exist. Blocks.
    pub(crate) fn open(dir: &Path) -> io::Result<Option<Self>> {
        match openat(CWD, dir, FOLDER_FLAGS, Mode::empty()) {
            Ok(dir) => Ok(Some(Self(dir.into()))),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    pub(crate) fn as_file(&self) -> &File {
        &self.0
    }

    /// Returns the folder of a file, which `path` names relative to the directory, and the name of the file in it. With `makes`,
    /// makes missing folders.
    fn folder_of<'a>(&self, path: &'a str, makes: bool) -> io::Result<(File, &'a str)> {
        let (folders, name) = path.rsplit_once('/').map_or((None, path), |(folders, name)| (Some(folders), name));
        let mut folder = self.0.try_clone()?;
        for name in folders.into_iter().flat_map(|folders| folders.split('/')) {
            folder = match open_folder(&folder, name) {
                Err(e) if makes && e.kind() == io::ErrorKind::NotFound => {
                    match mkdirat(&folder, name, Mode::from_raw_mode(0o700)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(e) => return Err(e.into()),
                    }
                    sync(&folder)?;
                    open_folder(&folder, name)?
                }
                other => other?,
            };
        }
        Ok((folder, name))
    }

    /// Reads a file, with its stamp from before; `None` if it does not exist. Blocks.
    ///
    /// # Errors
    /// Also for what is not a regular file, and for one with more than `limit` bytes.
    pub(crate) fn read(&self, path: &str, limit: u64) -> io::Result<Option<(Vec<u8>, String)>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = self
            .folder_of(path, false)
            .and_then(|(folder, name)| Ok(File::from(openat(&folder, name, flags, Mode::empty())?)));
        let file = match opened {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let stat = fstat(&file)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        Ok(Some((bytes, stamp(&stat))))
    }

    /// Replaces a file atomically, and returns its stamp. Makes missing folders. Blocks.
    pub(crate) fn replace(&self, path: &str, bytes: &[u8]) -> io::Result<String> {
        let (folder, name) = self.folder_of(path, true)?;
        let temporary = format!("{TEMPORARY_PREFIX}{}", Uuid::new_v4());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let written = (|| {
            let mut file = File::from(openat(&folder, &temporary, flags, Mode::from_raw_mode(0o600))?);
            file.write_all(bytes)?;
            sync(&file)?;
            renameat(&folder, &temporary, &folder, name)?;
            sync(&folder)?;
            Ok(stamp(&fstat(&file)?))
        })();
        if written.is_err() {
            let _ = unlinkat(&folder, &temporary, AtFlags::empty());
        }
        written
    }

    /// Deletes a file. Folders stay. Blocks.
    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        let removed = self.folder_of(path, false).and_then(|(folder, name)| {
            unlinkat(&folder, name, AtFlags::empty())?;
            sync(&folder)
        });
        removed.or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })
    }

    /// Gives a file another name in its folder. Blocks.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if that is taken.
    pub(crate) fn rename(&self, path: &str, new_path: &str) -> io::Result<()> {
        let (folder, name) = self.folder_of(path, false)?;
        let new_name = new_path.rsplit('/').next().unwrap_or(new_path);
        renameat_with(&folder, name, &folder, new_name, RenameFlags::NOREPLACE)?;
        sync(&folder)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::listing::Listing;

    #[test]
    fn links_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (dir, outside) = (home.path().join("a"), home.path().join("outside"));
        fs::create_dir_all(dir.join("docs")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("x"), "theirs").unwrap();
        symlink(&outside, dir.join("docs/folder")).unwrap();
        symlink(outside.join("x"), dir.join("docs/x")).unwrap();
        let open = OpenDir::open(&dir).unwrap().unwrap();
        assert!(open.read("docs/folder/x", 99).is_err());
        assert!(open.read("docs/x", 99).is_err());
        assert!(open.replace("docs/folder/x", b"mine").is_err());
        assert!(open.remove("docs/folder/x").is_err());
        assert!(open.rename("docs/folder/x", "docs/folder/y").is_err());
        assert!(open.replace("docs/../../outside/x", b"mine").is_err());
        open.replace("docs/x", b"mine").unwrap();
        assert_eq!(fs::read_to_string(outside.join("x")).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(dir.join("docs/x")).unwrap(), "mine");
        let listing = Listing::of(&open).unwrap();
        assert_eq!(listing.files.keys().collect::<Vec<_>>(), ["docs/x"]);
        assert_eq!(listing.unusable.keys().collect::<Vec<_>>(), ["docs/folder"]);
        symlink(&dir, home.path().join("link")).unwrap();
        assert!(OpenDir::open(&home.path().join("link")).is_err());
        assert!(OpenDir::open(&home.path().join("none")).unwrap().is_none());
    }

    #[test]
    fn a_stamp_is_that_of_the_list_and_changes_with_the_file() {
        let home = tempfile::tempdir().unwrap();
        let open = OpenDir::open(home.path()).unwrap().unwrap();
        let stamp = open.replace("docs/a/x", b"one").unwrap();
        let listed = |open: &OpenDir| Listing::of(open).unwrap().files["docs/a/x"].stamp.clone();
        assert_eq!(listed(&open), stamp);
        assert_eq!(open.read("docs/a/x", 3).unwrap(), Some((b"one".to_vec(), stamp.clone())));
        assert!(open.read("docs/a/x", 2).is_err());
        assert_eq!(open.read("docs/none/x", 9).unwrap(), None);
        fs::write(home.path().join("docs/a/x"), "two").unwrap();
        assert_ne!(listed(&open), stamp);
        open.rename("docs/a/x", "docs/a/y").unwrap();
        open.replace("docs/a/x", b"three").unwrap();
        assert_eq!(open.rename("docs/a/x", "docs/a/y").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        open.remove("docs/a/x").unwrap();
        open.remove("docs/a/x").unwrap();
        assert_eq!(fs::read_to_string(home.path().join("docs/a/y")).unwrap(), "two");
    }
}
