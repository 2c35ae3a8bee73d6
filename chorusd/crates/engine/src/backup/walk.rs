//! Walks a directory tree by open descriptors. It follows no symbolic link, so concurrent changes cannot lead it out of
//! the tree.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};

/// The limit on nested directories, since each level holds a descriptor open.
const MAX_DEPTH: usize = 200;

/// A directory entry that the walk found.
pub(super) struct WalkItem<'a> {
    dir: BorrowedFd<'a>,
    name: &'a OsStr,
    pub path: &'a Path,
    pub kind: ItemKind,
    pub stat: Stat,
}

/// Its kind.
pub(super) enum ItemKind {
    Dir,
    File,
    Link(OsString),
    /// A socket, pipe or device.
    Special,
}

/// Receives what a walk finds.
pub(super) trait Visitor {
    /// Is called for each item. For a directory, true enters it. An error ends the walk.
    fn visit(&mut self, item: &WalkItem<'_>) -> io::Result<bool>;

    /// Is called for a path that cannot be read.
    fn visit_unreadable(&mut self, path: &Path, error: &io::Error);
}

/// Opens a directory without following a link.
pub(super) fn open_dir(at: BorrowedFd<'_>, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, name, flags, Mode::empty())?)
}

/// Opens the directory `path` below `at` component by component, without following a link.
pub(super) fn open_below(at: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let mut held = at.try_clone_to_owned()?;
    for name in path {
        held = open_dir(held.as_fd(), name)?;
    }
    Ok(held)
}

/// Walks everything in `dir`, whose own path is `path`, sorted by name. `objects` comes last in each directory, so that
/// a copied git repository has every object that its references name. Returns the errors of `visitor`.
pub(super) fn walk(dir: BorrowedFd<'_>, path: &Path, visitor: &mut dyn Visitor) -> io::Result<()> {
    walk_level(dir, path, MAX_DEPTH, visitor)
}

fn walk_level(dir: BorrowedFd<'_>, path: &Path, deep: usize, visitor: &mut dyn Visitor) -> io::Result<()> {
    let names = match sorted_names(dir) {
        Ok(names) => names,
        Err(e) => {
            visitor.visit_unreadable(path, &e);
            return Ok(());
        }
    };
    for name in names {
        let path = path.join(&name);
        let stat = match statat(dir, &*name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            // Deleted since it was listed.
            Err(rustix::io::Errno::NOENT) => continue,
            Err(e) => {
                visitor.visit_unreadable(&path, &e.into());
                continue;
            }
        };
        let what = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => ItemKind::Dir,
            FileType::RegularFile => ItemKind::File,
            FileType::Symlink => match readlinkat(dir, &*name, Vec::new()) {
                Ok(target) => ItemKind::Link(OsString::from_vec(target.into_bytes())),
                Err(_) => continue,
            },
            _ => ItemKind::Special,
        };
        let is_dir = matches!(what, ItemKind::Dir);
        let enter = visitor.visit(&WalkItem { dir, name: &name, path: &path, kind: what, stat })?;
        if !(is_dir && enter) {
            continue;
        }
        match open_dir(dir, &*name) {
            Ok(_) if deep == 0 => {
                visitor.visit_unreadable(&path, &io::Error::other("directories are nested too deeply"))
            }
            Ok(inner) => walk_level(inner.as_fd(), &path, deep - 1, visitor)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => visitor.visit_unreadable(&path, &e),
        }
    }
    Ok(())
}

fn sorted_names(dir: BorrowedFd<'_>) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    names.sort_by(|one, two| (one == "objects", one).cmp(&(two == "objects", two)));
    Ok(names)
}

impl WalkItem<'_> {
    /// Opens the file. Fails if it was replaced by something other than a regular file.
    pub(super) fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(self.dir, self.name, flags, Mode::empty())?;
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("no longer a regular file"));
        }
        Ok(file.into())
    }
}
