//! Control groups, which bound the memory and processes of a command as a whole, where the daemon may create them.
//!
//! Every command gets its own groups below the daemon's. The helper joins them before it gives up its capabilities.
//! They are removed when the command has ended; groups left by a crash are removed at the next start.

mod command_groups;
mod parent_group;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::ResourceLimits;
pub(crate) use command_groups::CommandCgroups;
use parent_group::ParentGroup;

/// Prefix of the names of all groups of commands.
const NAME_PREFIX: &str = "chorus-";
/// Groups of other homes are removed only after this age: a younger one may be about to be joined.
const STALE_AGE: Duration = Duration::from_secs(600);

/// The groups below which commands get theirs, one per hierarchy. Empty if the daemon's groups are managed by somebody
/// else.
#[derive(Debug)]
pub(crate) struct Cgroups {
    parents: Vec<ParentGroup>,
    /// Prefix of the names of all groups of this home.
    prefix: String,
    next: AtomicU64,
}

impl Cgroups {
    /// Detects the groups of this process and removes those that an earlier daemon of the same home left. Makes a few
    /// blocking calls.
    #[must_use]
    pub(crate) fn detect(home: &Path) -> Self {
        let read = |file: &str| fs::read_to_string(Path::new("/proc/self").join(file)).unwrap_or_default();
        let places = parent_group::find_own_groups(&read("mountinfo"), &read("cgroup"));
        let places = places.into_iter().filter_map(ParentGroup::prepare).collect();
        // Homes can share a name but not a device and inode.
        let (device, inode) = fs::metadata(home).map_or((0, 0), |home| (home.dev(), home.ino()));
        let found =
            Self { parents: places, prefix: format!("{NAME_PREFIX}{device:x}-{inode:x}-"), next: AtomicU64::new(0) };
        for place in &found.parents {
            tracing::debug!(dir = %place.dir.display(), "commands run in cgroups");
            // Groups of other homes, which may no longer exist: remove those that are old and empty, as a new one may
            // be about to be joined.
            let others = place.child_groups(NAME_PREFIX).into_iter().filter(|dir| is_stale(dir));
            for left in others.filter(|dir| fs::remove_dir(dir).is_err()) {
                tracing::debug!("keeping a cgroup that is in use: {}", left.display());
            }
            for left in place.child_groups(&found.prefix) {
                drop(CommandCgroups::from_dirs(vec![left]));
            }
        }
        found
    }

    /// Creates groups for one command; groups that cannot be created are left out.
    #[must_use]
    pub(crate) fn create_for_command(&self, limits: &ResourceLimits) -> CommandCgroups {
        let mut group = CommandCgroups::from_dirs(Vec::new());
        for place in &self.parents {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if let Err(e) = group.create_group(place, &format!("{}{number}", self.prefix), limits) {
                tracing::warn!(dir = %place.dir.display(), "running a command without a cgroup: {e}");
            }
        }
        group
    }
}

fn is_stale(dir: &Path) -> bool {
    let made = fs::metadata(dir).and_then(|dir| dir.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > STALE_AGE))
}
