//! How much a command may use.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::process::{Resource, Rlimit, geteuid, getpid, setrlimit};

use crate::sandbox::protocol::{BoundResources, LaunchSpec, MemoryBound, ProcessBound};

/// Process numbers below this one are not given again once they were.
const RESERVED_PIDS: u64 = 300;

/// The release of the kernel, as far as it matters here.
fn kernel_version() -> (u32, u32) {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Bounds the processes of the namespace that this one is the first of, also those of root. Needs the powers that
/// are given up afterwards.
pub fn limit_namespace_pids(processes: u64) -> bool {
    // On older ones the number is that of the whole machine.
    if kernel_version() < (6, 14) || !getpid().is_init() {
        return false;
    }
    let bound = || {
        let proc = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&proc)?;
        let mounted = fsmount(&proc, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        let file = openat(&mounted, "sys/kernel/pid_max", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::io::write(&file, (RESERVED_PIDS + processes).to_string().as_bytes())
    };
    bound().is_ok()
}

/// Joins control groups, with all that this process starts; what they bound.
pub fn join_cgroups(groups: &[BoundResources], doors: &[OwnedFd]) -> BoundResources {
    let mut joined = BoundResources::default();
    for (bounds, door) in groups.iter().zip(doors) {
        // 0 is whoever writes it, whatever its number is here or there.
        if rustix::io::write(door, b"0").is_ok() {
            joined.memory |= bounds.memory;
            joined.processes |= bounds.processes;
        }
    }
    joined
}

/// The limits of each process. How memory and the number of processes are bounded; `namespace`: the latter is already, as
/// is what the groups that were `joined` bound.
///
/// # Errors
/// Those of the kernel.
pub fn set_limits(
    spec: &LaunchSpec,
    namespace: bool,
    joined: BoundResources,
) -> rustix::io::Result<(MemoryBound, ProcessBound)> {
    let limit = |what, most| setrlimit(what, Rlimit { current: Some(most), maximum: Some(most) });
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, spec.file)?;
    // What a program only reserves does not count, as that of Go, Java or Node. Also within a group: who is told that
    // there is no more memory can say so, and whoever the kernel ends cannot.
    limit(Resource::Data, spec.memory)?;
    // Where the machine has none left, a command goes before the daemon and everybody else.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let memory = match (joined.memory, getpid().is_init()) {
        (true, _) => MemoryBound::Cgroup,
        (_, true) => MemoryBound::Watch,
        _ => MemoryBound::Rlimit,
    };
    if namespace {
        return Ok((memory, ProcessBound::Namespace));
    }
    if joined.processes {
        return Ok((memory, ProcessBound::Cgroup));
    }
    // Before 5.14 all processes of the user would be counted, wherever they are; root is bound by none.
    if geteuid().is_root() || kernel_version() < (5, 14) {
        return Ok((memory, ProcessBound::Unbounded));
    }
    limit(Resource::Nproc, spec.processes)?;
    Ok((memory, ProcessBound::Rlimit))
}
