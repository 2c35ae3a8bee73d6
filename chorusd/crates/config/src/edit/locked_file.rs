//! The configuration file while it is edited: locked against other editors, and replaced at once.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Symbolic links that are followed one after the other, as many as the kernel follows.
const MAX_LINKS: usize = 40;

/// The file, which no other command edits until this is dropped.
#[derive(Debug)]
pub(super) struct LockedFile {
    /// The file itself, if the path is a symbolic link.
    target: PathBuf,
    folder: PathBuf,
    /// Its text; `None` if it does not exist.
    pub text: Option<String>,
    /// The lock, which also `models add` takes; `None` for a file that does not exist.
    opened: Option<File>,
}

impl LockedFile {
    /// Waits for other editors, and reads the file. Creates its directory.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let target = follow_links(path.to_owned());
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        loop {
            let opened = match File::open(&target) {
                Ok(opened) => opened,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    return Ok(Self { target, folder, text: None, opened: None });
                }
                Err(e) => return Err(e),
            };
            opened.lock()?;
            // Whoever had the lock may have put another file in its place.
            let same =
                |there: &fs::Metadata, here: fs::Metadata| (there.dev(), there.ino()) == (here.dev(), here.ino());
            match fs::metadata(&target) {
                Ok(there) if same(&there, opened.metadata()?) => {
                    let text = io::read_to_string(&opened)?;
                    return Ok(Self { target, folder, text: Some(text), opened: Some(opened) });
                }
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Checks that the file is not protected against changes, which a replacement would get around.
    ///
    /// # Errors
    /// `ReadOnlyFilesystem` if nobody may write it, or this user may not.
    pub(super) fn ensure_writable(&self) -> io::Result<()> {
        let Some(opened) = &self.opened else { return Ok(()) };
        let may_write = rustix::fs::access(&self.target, rustix::fs::Access::WRITE_OK).is_ok();
        if opened.metadata()?.permissions().readonly() || !may_write {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        Ok(())
    }

    /// Replaces the file by `text`. Its owner and its permissions stay; a new file is private. Returns false if there was no
    /// file, and another command has created one since.
    pub(super) fn replace(&self, text: &str) -> io::Result<bool> {
        self.ensure_writable()?;
        let mut draft = tempfile::Builder::new().prefix("config.toml.").tempfile_in(&self.folder)?;
        draft.write_all(text.as_bytes())?;
        let mut permissions = Permissions::from_mode(0o600);
        if let Some(opened) = &self.opened {
            let (old, new) = (opened.metadata()?, draft.as_file().metadata()?);
            if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
                std::os::unix::fs::fchown(draft.as_file(), Some(old.uid()), Some(old.gid()))?;
            }
            permissions = old.permissions();
        }
        draft.as_file().set_permissions(permissions)?;
        draft.as_file().sync_all()?;
        let placed = match self.opened {
            Some(_) => draft.persist(&self.target),
            None => draft.persist_noclobber(&self.target),
        };
        match placed {
            Ok(_) => File::open(&self.folder)?.sync_all().map(|()| true),
            Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(e.error),
        }
    }
}

/// Returns the file that a path means if it is a symbolic link, so that the link stays one; the file need not exist.
fn follow_links(path: PathBuf) -> PathBuf {
    if let Ok(file) = fs::canonicalize(&path) {
        return file;
    }
    let mut path = path;
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}
