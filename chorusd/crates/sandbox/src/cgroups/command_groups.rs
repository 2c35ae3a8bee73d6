//! The control groups of one command.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::parent_group::{CgroupVersion, ParentGroup};
use crate::ResourceLimits;
use crate::protocol::BoundResources;

/// Number of attempts to remove a group whose last process is about to end, and the interval between them.
const REMOVE_ATTEMPTS: u32 = 100;
const REMOVE_INTERVAL: Duration = Duration::from_millis(100);

/// The control groups of one command; dropping it removes them.
#[derive(Debug)]
pub(crate) struct CommandCgroups {
    dirs: Vec<PathBuf>,
    /// The open `cgroup.procs` files, by which a process joins, with the resources that each group bounds.
    join_files: Vec<(File, BoundResources)>,
}

impl CommandCgroups {
    pub(super) fn from_dirs(dirs: Vec<PathBuf>) -> Self {
        Self { dirs, join_files: Vec::new() }
    }

    /// Creates one more group below `place`. A group whose limits cannot be set cannot be joined and is removed on
    /// drop.
    pub(super) fn create_group(&mut self, place: &ParentGroup, name: &str, limits: &ResourceLimits) -> io::Result<()> {
        let dir = place.dir.join(name);
        fs::create_dir(&dir)?;
        self.dirs.push(dir.clone());
        write_limits(place, &dir, limits)?;
        let door = File::options().write(true).open(dir.join("cgroup.procs"))?;
        self.join_files.push((door, place.bounds));
        Ok(())
    }

    /// Returns the files that a joining process writes to, in the order of [`CommandCgroups::bound_resources`].
    pub(crate) fn join_files(&self) -> impl Iterator<Item = &File> {
        self.join_files.iter().map(|(door, _)| door)
    }

    /// Returns the resources that each group bounds.
    #[must_use]
    pub(crate) fn bound_resources(&self) -> Vec<BoundResources> {
        self.join_files.iter().map(|(_, bounds)| *bounds).collect()
    }
}

fn write_limits(place: &ParentGroup, dir: &Path, limits: &ResourceLimits) -> io::Result<()> {
    let put = |file: &str, value: u64| fs::write(dir.join(file), value.to_string());
    if place.bounds.processes {
        put("pids.max", limits.processes)?;
    }
    if place.bounds.memory {
        match place.version {
            CgroupVersion::V1 => {
                put("memory.limit_in_bytes", limits.memory)?;
                // Not every kernel accounts for swap.
                let _ = put("memory.memsw.limit_in_bytes", limits.memory);
            }
            CgroupVersion::V2 => {
                put("memory.max", limits.memory)?;
                let _ = put("memory.swap.max", 0);
            }
        }
    }
    Ok(())
}

/// Removes groups and returns those that are still in use.
fn remove_dirs(dirs: Vec<PathBuf>) -> Vec<PathBuf> {
    let busy = |dir: &PathBuf| fs::remove_dir(dir).is_err_and(|e| e.kind() != io::ErrorKind::NotFound);
    dirs.into_iter().filter(busy).collect()
}

impl Drop for CommandCgroups {
    /// Removes the groups. If processes in a group are still ending, it is removed a little later, or at the next start
    /// if the daemon ends first.
    fn drop(&mut self) {
        self.join_files.clear();
        let mut busy = remove_dirs(std::mem::take(&mut self.dirs));
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if busy.is_empty() {
            return;
        }
        // Only version 2 has this file; nobody waits for the remaining processes any more.
        for dir in &busy {
            let kill = dir.join("cgroup.kill");
            if kill.exists() {
                let _ = fs::write(kill, "1");
            }
        }
        runtime.spawn(async move {
            for _ in 0..REMOVE_ATTEMPTS {
                tokio::time::sleep(REMOVE_INTERVAL).await;
                busy = remove_dirs(std::mem::take(&mut busy));
                if busy.is_empty() {
                    return;
                }
            }
            tracing::warn!("cannot remove cgroups of ended commands: {busy:?}");
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_cannot_be_bounded_is_not_joined_and_not_left() {
        let folder = tempfile::tempdir().unwrap();
        let bounds = BoundResources { memory: true, processes: true };
        // In an ordinary directory the limits become plain files, and there is no `cgroup.procs` to open.
        let place = ParentGroup { dir: folder.path().into(), version: CgroupVersion::V2, bounds };
        let mut group = CommandCgroups::from_dirs(Vec::new());
        assert!(group.create_group(&place, "g", &ResourceLimits::default()).is_err());
        assert!(group.bound_resources().is_empty() && group.join_files().next().is_none());
        let dir = folder.path().join("g");
        assert_eq!(fs::read_to_string(dir.join("memory.max")).unwrap(), (4_u64 << 30).to_string());
        assert_eq!(fs::read_to_string(dir.join("pids.max")).unwrap(), "4096");
        for entry in fs::read_dir(&dir).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        drop(group);
        assert!(!dir.exists());
    }
}
