//! A small file system that tests can fill.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::is_root;
use crate::{Need, skip_without};

/// A mounted tmpfs. Dropping it unmounts it.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts a file system of `kib` KiB at `path`, which must exist. Skips the test and returns `None` if mounting is
    /// not permitted.
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

    /// Tells the new path after a parent directory was moved.
    pub fn set_path(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// Returns the free bytes.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        let stat = rustix::fs::statvfs(&self.path).expect("the file system");
        stat.f_bavail * stat.f_frsize
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Unmount lazily: processes that still use it keep it until they end.
        _ = Command::new("umount").arg("-l").arg(&self.path).output();
    }
}
