//! Resource limits of a command.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::process::{Resource, Rlimit, geteuid, getpid, setrlimit};

use crate::protocol::{BoundResources, LaunchSpec, MemoryBound, ProcessBound};

/// The kernel does not reuse process ids below this number.
const RESERVED_PIDS: u64 = 300;

/// Returns the major and minor version of the kernel.
fn kernel_version() -> (u32, u32) {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Limits the number of processes in the namespace whose first process this is, including those of root. Needs the
/// capabilities that are given up afterwards.
pub(super) fn limit_namespace_pids(processes: u64) -> bool {
    // In older kernels `pid_max` applies to the whole machine.
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

/// Moves this process and its later children into the control groups and returns the resources that those bound.
pub(super) fn join_cgroups(groups: &[BoundResources], doors: &[OwnedFd]) -> BoundResources {
    let mut joined = BoundResources::default();
    for (bounds, door) in groups.iter().zip(doors) {
        // 0 stands for the writing process, whatever its id in this namespace or that of the group.
        if rustix::io::write(door, b"0").is_ok() {
            joined.memory |= bounds.memory;
            joined.processes |= bounds.processes;
        }
    }
    joined
}

/// Sets the limits of each process and returns how memory and the number of processes are bounded. `namespace` is true
/// if the namespace already limits the processes; `joined` says what the joined control groups bound.
pub(super) fn set_limits(
    spec: &LaunchSpec,
    namespace: bool,
    joined: BoundResources,
) -> rustix::io::Result<(MemoryBound, ProcessBound)> {
    let limit = |what, most| setrlimit(what, Rlimit { current: Some(most), maximum: Some(most) });
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, spec.file)?;
    // RLIMIT_DATA does not count memory that is only reserved, as Go, Java and Node do. It is set in a control group
    // too: a program whose allocation fails can report that, but one that the kernel kills cannot.
    limit(Resource::Data, spec.memory)?;
    // If the machine runs out of memory, a command is killed before the daemon and other processes.
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
    // Before 5.14 the limit counts all processes of the user on the machine; root is not bound by it at all.
    if geteuid().is_root() || kernel_version() < (5, 14) {
        return Ok((memory, ProcessBound::Unbounded));
    }
    limit(Resource::Nproc, spec.processes)?;
    Ok((memory, ProcessBound::Rlimit))
}
