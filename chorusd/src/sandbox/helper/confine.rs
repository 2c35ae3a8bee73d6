//! The inner stage: takes away what the command is not to have, then runs it.

use std::iter;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{
    DumpableBehavior, Signal, getpid, set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal,
    setsid,
};

use super::{capabilities, control_socket, init, landlock, limits, memory_watchdog, rootfs, seccomp, with_context};
use crate::sandbox::Isolation;
use crate::sandbox::mounts::SHARED_MEMORY_DIR;
use crate::sandbox::protocol::{AppliedConfinement, HelperReport, LaunchSpec, MemoryBound};

/// Confines this process, runs the command, and waits for its end.
///
/// # Errors
/// What could not be taken away, or a command that cannot be started.
pub fn run() -> Result<(), String> {
    let (spec, doors) = control_socket::receive_spec()?;
    set_close_on_exec().map_err(with_context("cannot keep its descriptors to itself"))?;
    if getpid().is_init() {
        // Whoever made the namespace has one thread, which lives as long as it does.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(with_context("cannot end with the outer stage"))?;
    } else if spec.way == Isolation::None {
        set_child_subreaper(Some(getpid())).map_err(with_context("cannot keep the command's processes together"))?;
    } else {
        return Err("this is no namespace of its own".into());
    }
    // Away from the daemon's terminal, where it has one; the leader of a session is away already.
    let _ = setsid();
    if spec.way == Isolation::Namespaces {
        rootfs::build(&spec.steps)?;
        if !spec.network {
            // Tests of all kinds talk to themselves; without it they fail, and nothing else does.
            let _ = super::namespaces::bring_up_loopback();
        }
    }
    let joined = limits::join_cgroups(&spec.groups, &doors);
    drop(doors);
    let bounded = limits::limit_namespace_pids(spec.processes);
    capabilities::drop_all().map_err(with_context("cannot give up its powers"))?;
    let (mut memory, processes) =
        limits::set_limits(&spec, bounded, joined).map_err(with_context("cannot set limits"))?;
    let watch = (memory == MemoryBound::Watch)
        .then(|| memory_watchdog::MemoryWatchdog::new(spec.memory, private_dirs(&spec)))
        .flatten();
    if memory == MemoryBound::Watch && watch.is_none() {
        memory = MemoryBound::Rlimit;
    }
    let landlock = landlock::restrict(&spec.writable).map_err(with_context("Landlock"))?;
    let seccomp = seccomp::install_filters().map_err(with_context("seccomp"))?;
    // Nobody else's memory and descriptors are read through /proc.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(with_context("cannot hide from the command"))?;
    let [program, args @ ..] = &spec.argv[..] else { return Err("there is no command".into()) };
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(spec.env).current_dir(&spec.dir).stdin(Stdio::null());
    control_socket::send_report(&HelperReport::Ready(AppliedConfinement { landlock, seccomp, processes, memory }));
    let child = std::os::unix::process::CommandExt::process_group(&mut command, 0)
        .spawn()
        .map_err(with_context(format!("cannot run {}", program.display())))?;
    let ended = init::wait_for_command(&child, watch)?;
    control_socket::send_report(&ended);
    Ok(())
}

/// Directories that nobody else sees.
fn private_dirs(spec: &LaunchSpec) -> impl Iterator<Item = PathBuf> {
    let shared = iter::once(SHARED_MEMORY_DIR.into());
    spec.writable.iter().filter(|at| **at != spec.dir).cloned().chain(shared)
}

/// Whatever the daemon was started with beside its streams is not the command's.
#[expect(unsafe_code, reason = "only a number tells of a descriptor that somebody else opened")]
fn set_close_on_exec() -> std::io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse().ok()).filter(|number| *number > 2)
        else {
            continue;
        };
        // SAFETY: it was listed a moment ago, this process has one thread, and all that changes is a flag.
        let descriptor = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
        rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(())
}
