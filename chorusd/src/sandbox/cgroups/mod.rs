//! Control groups: what bounds the memory and the processes of a command all together, where the daemon may make them.
//!
//! Every command gets groups of its own below those of the daemon. The program inside joins them before it gives up
//! its powers, and they are removed when the command has ended; those that a crash leaves behind, at the next start.

mod command_groups;
mod parent_group;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parent_group::ParentGroup;

use super::ResourceLimits;
pub use command_groups::CommandCgroups;

/// What the names of all groups of commands begin with.
const NAME_PREFIX: &str = "chorus-";
/// From this age on a group is used or was left behind.
const STALE_AGE: Duration = Duration::from_secs(600);

/// Where groups are made, one place for each hierarchy. None where somebody else keeps the daemon's.
#[derive(Debug)]
pub struct Cgroups {
    parents: Vec<ParentGroup>,
    /// What the names of all groups of this home begin with.
    prefix: String,
    next: AtomicU64,
}

impl Cgroups {
    /// Those of this process, without what an earlier daemon of the same home left. Blocks for a few calls.
    #[must_use]
    pub fn detect(home: &Path) -> Self {
        let read = |file: &str| fs::read_to_string(Path::new("/proc/self").join(file)).unwrap_or_default();
        let places = parent_group::find_own_groups(&read("mountinfo"), &read("cgroup"));
        let places = places.into_iter().filter_map(ParentGroup::prepare).collect();
        // Others may have a home of the same name, but never the same directory.
        let (device, inode) = fs::metadata(home).map_or((0, 0), |home| (home.dev(), home.ino()));
        let found =
            Self { parents: places, prefix: format!("{NAME_PREFIX}{device:x}-{inode:x}-"), next: AtomicU64::new(0) };
        for place in &found.parents {
            tracing::debug!(dir = %place.dir.display(), "commands get control groups");
            // Of other homes, which may be gone, what is old and empty: a new one may be about to be joined.
            let others = place.child_groups(NAME_PREFIX).into_iter().filter(|dir| is_stale(dir));
            for left in others.filter(|dir| fs::remove_dir(dir).is_err()) {
                tracing::debug!("a control group that somebody uses stays: {}", left.display());
            }
            for left in place.child_groups(&found.prefix) {
                drop(CommandCgroups::from_dirs(vec![left]));
            }
        }
        found
    }

    /// Groups for one command; those that cannot be made are left out.
    #[must_use]
    pub fn create_for_command(&self, limits: &ResourceLimits) -> CommandCgroups {
        let mut group = CommandCgroups::from_dirs(Vec::new());
        for place in &self.parents {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if let Err(e) = group.create_group(place, &format!("{}{number}", self.prefix), limits) {
                tracing::warn!(dir = %place.dir.display(), "a command goes without a control group: {e}");
            }
        }
        group
    }
}

fn is_stale(dir: &Path) -> bool {
    let made = fs::metadata(dir).and_then(|dir| dir.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > STALE_AGE))
}
