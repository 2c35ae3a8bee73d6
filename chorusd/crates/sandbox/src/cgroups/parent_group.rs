//! Finds the groups below which the daemon may create others: its own, unless somebody else manages them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{geteuid, getpid};

use crate::protocol::BoundResources;

/// The group that the daemon moves itself into under version 2, where a group with children may not contain processes.
const DAEMON_GROUP: &str = "chorus-daemon";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CgroupVersion {
    V1,
    V2,
}

/// A group below which groups for commands can be created.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ParentGroup {
    pub dir: PathBuf,
    pub version: CgroupVersion,
    /// The resources that its child groups can bound.
    pub bounds: BoundResources,
}

/// Parses `/proc/self/mountinfo` and `/proc/self/cgroup` and returns the daemon's own groups, each with true if it is
/// the top of the visible hierarchy.
pub(super) fn find_own_groups(mounts: &str, groups: &str) -> Vec<(ParentGroup, bool)> {
    let mut found: Vec<(ParentGroup, bool)> = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let has = |name| controllers.split(',').any(|controller| controller == name);
        let (version, bounds) = match controllers {
            // A separate file lists its controllers.
            "" => (CgroupVersion::V2, BoundResources { memory: true, processes: true }),
            _ => (CgroupVersion::V1, BoundResources { memory: has("memory"), processes: has("pids") }),
        };
        if !bounds.memory && !bounds.processes {
            continue;
        }
        let controller = if bounds.memory { "memory" } else { "pids" };
        let mounted = mounts.lines().find_map(|mount| group_dir(mount, version, controller, path));
        found.extend(mounted.map(|dir| (ParentGroup { dir, version, bounds }, path == "/")));
    }
    found
}

/// Returns the directory of the group `path`, if this line of `mountinfo` mounts its hierarchy.
fn group_dir(mount: &str, version: CgroupVersion, controller: &str, path: &str) -> Option<PathBuf> {
    let (place, kind) = mount.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let (name, options) = (kind.next()?, kind.nth(1)?);
    let fits = match version {
        CgroupVersion::V1 => name == "cgroup" && options.split(',').any(|option| option == controller),
        CgroupVersion::V2 => name == "cgroup2",
    };
    let mut place = place.split(' ').skip(3);
    let (root, at) = (place.next()?, place.next()?);
    let below = Path::new(path).strip_prefix(root).ok().filter(|_| fits)?;
    Some(Path::new(at).join(below))
}

impl ParentGroup {
    /// Prepares the group for children; `None` if the daemon may not create any.
    pub(super) fn prepare((mut place, top): (Self, bool)) -> Option<Self> {
        let inner =
            place.version == CgroupVersion::V2 && place.dir.file_name().is_some_and(|name| name == DAEMON_GROUP);
        if inner {
            place.dir.pop();
        }
        if !(top || is_delegated(&place.dir)) || rustix::fs::access(&place.dir, rustix::fs::Access::WRITE_OK).is_err() {
            return None;
        }
        match place.version {
            CgroupVersion::V1 => Some(place),
            CgroupVersion::V2 => place.delegate_controllers(inner),
        }
    }

    /// Delegates the controllers to child groups, for which the daemon's process must leave the group. `inner` is true
    /// if it already has.
    fn delegate_controllers(mut self, inner: bool) -> Option<Self> {
        let file = |name: &str| self.dir.join(name);
        let text = fs::read_to_string(file("cgroup.controllers")).ok()?;
        let has = |name| text.split_ascii_whitespace().any(|controller| controller == name);
        self.bounds = BoundResources { memory: has("memory"), processes: has("pids") };
        let mut down = Vec::new();
        down.extend(self.bounds.memory.then_some("+memory"));
        down.extend(self.bounds.processes.then_some("+pids"));
        if down.is_empty() {
            return None;
        }
        let me = getpid().as_raw_nonzero().to_string();
        // The root group has no type and may contain processes.
        let moves = !inner && file("cgroup.type").exists();
        let aside = file(DAEMON_GROUP);
        if moves {
            // Processes of others must not be moved.
            let alone = fs::read_to_string(file("cgroup.procs")).ok()?.trim() == me;
            if !alone || !ensure_dir(&aside) || fs::write(aside.join("cgroup.procs"), &me).is_err() {
                let _ = fs::remove_dir(&aside);
                return None;
            }
        }
        if let Err(e) = fs::write(file("cgroup.subtree_control"), down.join(" ")) {
            tracing::debug!("cannot delegate cgroups: {e}");
            if moves {
                let _ = fs::write(file("cgroup.procs"), &me);
                let _ = fs::remove_dir(&aside);
            }
            return None;
        }
        Some(self)
    }

    /// Returns the child groups whose names start with `prefix`.
    pub(super) fn child_groups(&self, prefix: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        ours.map(|entry| entry.path()).collect()
    }
}

fn ensure_dir(dir: &Path) -> bool {
    fs::create_dir(dir).map_or_else(|e| e.kind() == io::ErrorKind::AlreadyExists, |()| true)
}

/// Returns true if the group was delegated to the daemon: it belongs to the daemon's user (not root), or carries
/// systemd's mark for delegated groups. Creating children in a group that somebody else manages would interfere with
/// them.
fn is_delegated(dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let user = geteuid();
    if !user.is_root() && fs::metadata(dir).is_ok_and(|dir| dir.uid() == user.as_raw()) {
        return true;
    }
    ["trusted.delegate", "user.delegate"].iter().any(|name| {
        let mut value = [0_u8; 8];
        rustix::fs::getxattr(dir, *name, &mut value[..]).is_ok_and(|length| value.get(..length) == Some(b"1"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: BoundResources = BoundResources { memory: true, processes: true };

    #[test]
    fn the_own_group_is_found_in_every_layout() {
        let two = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
        let own = "/user.slice/user-1000.slice/user@1000.service/app.slice/chorusd.service";
        let dir = PathBuf::from(format!("/sys/fs/cgroup{own}"));
        assert_eq!(
            find_own_groups(two, &format!("0::{own}\n")),
            [(ParentGroup { dir, version: CgroupVersion::V2, bounds: BOTH }, false)]
        );
        let one = "33 32 0:28 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n\
                   34 32 0:29 /box /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                   35 32 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
        let found = find_own_groups(one, "9:name=systemd:/x\n8:pids:/\n4:memory:/box/in:side\n2:cpu:/x\n");
        let processes = BoundResources { memory: false, processes: true };
        let memory = BoundResources { memory: true, processes: false };
        let place = |dir: &str, bounds| ParentGroup { dir: dir.into(), version: CgroupVersion::V1, bounds };
        assert_eq!(
            found,
            [(place("/sys/fs/cgroup/pids/", processes), true), (place("/sys/fs/cgroup/memory/in:side", memory), false)]
        );
        assert!(find_own_groups(one, "8:pids\n4:memory:/elsewhere\nx\n\n").is_empty());
    }

    /// Creates a directory that looks like a group; its files store whatever is written.
    fn group(controllers: &str, processes: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cgroup.controllers"), controllers).unwrap();
        fs::write(folder.path().join("cgroup.procs"), processes).unwrap();
        fs::write(folder.path().join("cgroup.type"), "domain").unwrap();
        folder
    }

    #[test]
    fn a_group_is_divided_only_where_the_daemon_is_alone_in_it() {
        let me = std::process::id();
        let place = |dir: &Path| ParentGroup { dir: dir.into(), version: CgroupVersion::V2, bounds: BOTH };
        let alone = group("cpu io memory pids\n", &format!("{me}\n"));
        assert_eq!(place(alone.path()).delegate_controllers(false), Some(place(alone.path())));
        let read = |name: &str| fs::read_to_string(alone.path().join(name)).unwrap();
        assert_eq!(read("cgroup.subtree_control"), "+memory +pids");
        assert_eq!(read("chorus-daemon/cgroup.procs"), me.to_string());
        // As after a restart from within the daemon's group.
        let inner = place(&alone.path().join(DAEMON_GROUP));
        assert_eq!(ParentGroup::prepare((inner, true)), Some(place(alone.path())));
        let shared = group("memory pids\n", &format!("1\n{me}\n"));
        assert_eq!(place(shared.path()).delegate_controllers(false), None);
        assert!(!shared.path().join(DAEMON_GROUP).exists() && !shared.path().join("cgroup.subtree_control").exists());
        let poor = group("cpu\n", &format!("{me}\n"));
        assert_eq!(place(poor.path()).delegate_controllers(false), None);
        assert!(!poor.path().join(DAEMON_GROUP).exists());
    }

    #[test]
    fn what_somebody_else_keeps_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let place = || ParentGroup { dir: folder.path().into(), version: CgroupVersion::V1, bounds: BOTH };
        assert_eq!(ParentGroup::prepare((place(), true)), Some(place()));
        let own = !geteuid().is_root();
        assert_eq!(ParentGroup::prepare((place(), false)).is_some(), own);
    }
}
