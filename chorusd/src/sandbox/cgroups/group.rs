//! The groups of one command.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::place::{Place, Version};
use crate::sandbox::Limits;
use crate::sandbox::wire::Bounds;

/// How often, and after how long each, the removal of a group is tried whose last process is about to end.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// The groups of one command, which are removed with this.
#[derive(Debug)]
pub struct Group {
    dirs: Vec<PathBuf>,
    /// What is written to by whoever joins, and what that bounds.
    doors: Vec<(File, Bounds)>,
}

impl Group {
    pub(super) fn of(dirs: Vec<PathBuf>) -> Self {
        Self { dirs, doors: Vec::new() }
    }

    /// Makes one more. One that cannot be bounded is not left behind.
    pub(super) fn add(&mut self, place: &Place, name: &str, limits: &Limits) -> io::Result<()> {
        let dir = place.dir.join(name);
        fs::create_dir(&dir)?;
        self.dirs.push(dir.clone());
        bound(place, &dir, limits)?;
        let door = File::options().write(true).open(dir.join("cgroup.procs"))?;
        self.doors.push((door, place.bounds));
        Ok(())
    }

    /// What the one who joins writes to, in the order of `bounds`.
    pub fn doors(&self) -> impl Iterator<Item = &File> {
        self.doors.iter().map(|(door, _)| door)
    }

    /// What each of the doors bounds.
    #[must_use]
    pub fn bounds(&self) -> Vec<Bounds> {
        self.doors.iter().map(|(_, bounds)| *bounds).collect()
    }
}

fn bound(place: &Place, dir: &Path, limits: &Limits) -> io::Result<()> {
    let put = |file: &str, value: u64| fs::write(dir.join(file), value.to_string());
    if place.bounds.processes {
        put("pids.max", limits.processes)?;
    }
    if place.bounds.memory {
        match place.version {
            Version::One => {
                put("memory.limit_in_bytes", limits.memory)?;
                // Not every kernel counts what is swapped out.
                let _ = put("memory.memsw.limit_in_bytes", limits.memory);
            }
            Version::Two => {
                put("memory.max", limits.memory)?;
                let _ = put("memory.swap.max", 0);
            }
        }
    }
    Ok(())
}

/// Those that cannot be removed yet.
fn remove(dirs: Vec<PathBuf>) -> Vec<PathBuf> {
    let busy = |dir: &PathBuf| fs::remove_dir(dir).is_err_and(|e| e.kind() != io::ErrorKind::NotFound);
    dirs.into_iter().filter(busy).collect()
}

impl Drop for Group {
    /// Removes them. A group whose processes are still ending goes a little later; if the daemon ends first, at its next
    /// start.
    fn drop(&mut self) {
        self.doors.clear();
        let mut busy = remove(std::mem::take(&mut self.dirs));
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if busy.is_empty() {
            return;
        }
        // Only version two has it; whoever is in there has nobody any more who waits for it.
        for dir in &busy {
            let kill = dir.join("cgroup.kill");
            if kill.exists() {
                let _ = fs::write(kill, "1");
            }
        }
        runtime.spawn(async move {
            for _ in 0..TRIES {
                tokio::time::sleep(PAUSE).await;
                busy = remove(std::mem::take(&mut busy));
                if busy.is_empty() {
                    return;
                }
            }
            tracing::warn!("control groups of commands that have ended are left behind: {busy:?}");
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_cannot_be_bounded_is_not_joined_and_not_left() {
        let folder = tempfile::tempdir().unwrap();
        let bounds = Bounds { memory: true, processes: true };
        // An ordinary directory: what is written makes files, and nothing is there to join by.
        let place = Place { dir: folder.path().into(), version: Version::Two, bounds };
        let mut group = Group::of(Vec::new());
        assert!(group.add(&place, "g", &Limits::default()).is_err());
        assert!(group.bounds().is_empty() && group.doors().next().is_none());
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
