//! The daemon's program as it was when the daemon started. An update replaces the file while the daemon runs, and the helper must be of the
//! daemon's version.

use std::fs::{self, File, Metadata};
use std::io::{self, Seek as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chorus_base::sync::Mutex;

/// Name of the copy, in the directory `db` of Chorus's home.
const COPY: &str = "chorusd-helper";

/// The daemon's program. Once its file is another one, a copy of what it was takes its place.
#[derive(Debug)]
pub(crate) struct OwnProgram {
    path: PathBuf,
    /// The program that runs, also after its file is gone; `None` if it could not be opened.
    running: Option<File>,
    copy_path: PathBuf,
    /// True once the copy is complete.
    is_copied: Mutex<bool>,
}

impl OwnProgram {
    /// Opens the program, and removes the copy of an earlier daemon, which stays when that one ends.
    pub(crate) fn open(path: &Path, home: &Path) -> Self {
        let copy_path = home.join("db").join(COPY);
        let _ = fs::remove_file(&copy_path);
        Self { path: path.to_owned(), running: File::open(path).ok(), copy_path, is_copied: Mutex::new(false) }
    }

    /// Returns the path from which the program can be started. Reads and writes the whole program at the first call after an update.
    ///
    /// # Errors
    /// The copy cannot be written.
    pub(crate) fn path(&self) -> io::Result<&Path> {
        let Some(running) = &self.running else { return Ok(&self.path) };
        let mut is_copied = self.is_copied.lock();
        if *is_copied {
            return Ok(&self.copy_path);
        }
        if fs::metadata(&self.path).is_ok_and(|found| is_same(&found, running)) {
            return Ok(&self.path);
        }
        self.copy(running)?;
        *is_copied = true;
        tracing::info!("{} was replaced; commands start with a copy of the former one", self.path.display());
        Ok(&self.copy_path)
    }

    fn copy(&self, running: &File) -> io::Result<()> {
        let _ = fs::remove_file(&self.copy_path);
        let mut copy = File::options().write(true).create_new(true).mode(0o500).open(&self.copy_path)?;
        let mut from = running;
        from.rewind()?;
        io::copy(&mut from, &mut copy).map(drop)
    }
}

fn is_same(found: &Metadata, running: &File) -> bool {
    running.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
}
