//! How much a command may use.

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::process::{Resource, Rlimit, geteuid, getpid, setrlimit};

use crate::sandbox::wire::Processes;

/// Process numbers below this one are not given again once they were.
const RESERVED: u64 = 300;

/// The release of the kernel, as far as it matters here.
fn kernel() -> (u32, u32) {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Bounds the processes of the namespace that this one is the first of, also those of root. Needs the powers that
/// are given up afterwards.
pub fn bound_namespace(processes: u64) -> bool {
    // On older ones the number is that of the whole machine.
    if kernel() < (6, 14) || !getpid().is_init() {
        return false;
    }
    let bound = || {
        let proc = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&proc)?;
        let mounted = fsmount(&proc, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        let file = openat(&mounted, "sys/kernel/pid_max", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::io::write(&file, (RESERVED + processes).to_string().as_bytes())
    };
    bound().is_ok()
}

/// The limits of each process. How their number is bounded; `bounded`: it is already.
///
/// # Errors
/// Those of the kernel.
pub fn set(memory: u64, processes: u64, bounded: bool) -> rustix::io::Result<Processes> {
    let limit = |what, most| setrlimit(what, Rlimit { current: Some(most), maximum: Some(most) });
    limit(Resource::Core, 0)?;
    // What a program only reserves does not count, as that of Go, Java or Node.
    limit(Resource::Data, memory)?;
    if bounded {
        return Ok(Processes::Namespace);
    }
    // Before 5.14 all processes of the user would be counted, wherever they are; root is bound by none.
    if geteuid().is_root() || kernel() < (5, 14) {
        return Ok(Processes::Unbounded);
    }
    limit(Resource::Nproc, processes)?;
    Ok(Processes::Rlimit)
}
