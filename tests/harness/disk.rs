//! A small disk of its own, to be filled.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::is_root;
use crate::{Need, skip_without};

/// A mounted file system in memory. Dropping it unmounts it.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts one of `kib` KiB at `path`, which must be there; `None` with a message where that is not permitted.
    #[must_use]
    pub fn mount(path: &Path, kib: u64) -> Option<Self> {
        let options = format!("size={kib}k,mode=0700");
        let mount = || {
            let done = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "chorus-test"]).arg(path).output();
            done.is_ok_and(|done| done.status.success())
        };
        if is_root() && mount() {
            return Some(Self { path: path.to_owned() });
        }
        skip_without(Need::Mount, "a file system cannot be mounted here");
        None
    }

    /// A directory above it was moved: it is at `path` now.
    pub fn moved(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// Bytes that are free.
    ///
    /// # Panics
    /// Where the file system cannot be asked.
    #[must_use]
    pub fn free(&self) -> u64 {
        let stat = rustix::fs::statvfs(&self.path).expect("the file system");
        stat.f_bavail * stat.f_frsize
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: what still runs there keeps it until it ends.
        _ = Command::new("umount").arg("-l").arg(&self.path).output();
    }
}
