//! The inner stage of the helper: confines itself, then runs the command.

use std::iter;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{
    DumpableBehavior, Signal, getpid, set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal,
    setsid,
};

use super::{capabilities, control_socket, init, landlock, limits, memory_watchdog, rootfs, seccomp, with_context};
use crate::Isolation;
use crate::mounts::SHARED_MEMORY_DIR;
use crate::protocol::{AppliedConfinement, HelperReport, LaunchSpec, MemoryBound};
use crate::shared_paths;

/// Confines this process, runs the command, and waits for its end.
pub(super) fn run() -> Result<(), String> {
    let (spec, doors, input) = control_socket::receive_spec()?;
    set_close_on_exec().map_err(with_context("cannot close its descriptors"))?;
    if getpid().is_init() {
        // The thread that created the namespace is the only one of its process and lives as long as that does.
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(with_context("cannot set the parent death signal"))?;
    } else if spec.way == Isolation::None {
        set_child_subreaper(Some(getpid()))
            .map_err(with_context("cannot become the reaper of the command's processes"))?;
    } else {
        return Err("not in a separate namespace".into());
    }
    // Detach from the daemon's terminal, if it has one. Fails harmlessly for a session leader, which is detached
    // already.
    let _ = setsid();
    if spec.way == Isolation::Namespaces {
        rootfs::build(&spec.steps)?;
        if !spec.network {
            // Test suites of all kinds connect to localhost. Without the interface they fail, but nothing else does.
            let _ = super::namespaces::bring_up_loopback();
        }
    }
    shared_paths::verify(&spec.identities)?;
    let joined = limits::join_cgroups(&spec.groups, &doors);
    drop(doors);
    let bounded = limits::limit_namespace_pids(spec.processes);
    capabilities::drop_all().map_err(with_context("cannot drop capabilities"))?;
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
    // Prevents others from reading its memory and descriptors through /proc.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(with_context("cannot hide from the command"))?;
    let [program, args @ ..] = &spec.argv[..] else { return Err("no command".into()) };
    let mut command = Command::new(program);
    let input = input.map_or_else(Stdio::null, Stdio::from);
    // Before the report: without isolation the directory may be moved afterwards. Only the command has use for that of this
    // process.
    rustix::process::chdir(&spec.dir).map_err(with_context("cannot enter its directory"))?;
    command.args(args).env_clear().envs(spec.env).stdin(input);
    control_socket::send_report(&HelperReport::Ready(AppliedConfinement { landlock, seccomp, processes, memory }));
    let child = std::os::unix::process::CommandExt::process_group(&mut command, 0)
        .spawn()
        .map_err(with_context(format!("cannot run {}", program.display())))?;
    // Only the command reads its standard input; whoever writes to it notices when it has ended.
    drop(command);
    let ended = init::wait_for_command(&child, watch)?;
    control_socket::send_report(&ended);
    Ok(())
}

/// Returns the writable directories that only this sandbox has.
fn private_dirs(spec: &LaunchSpec) -> impl Iterator<Item = PathBuf> {
    let shared = iter::once(SHARED_MEMORY_DIR.into());
    let is_mounted = |at: &&PathBuf| **at == spec.dir || spec.identities.iter().any(|mounted| mounted.path == **at);
    spec.writable.iter().filter(move |at| !is_mounted(at)).cloned().chain(shared)
}

/// Sets close-on-exec on all descriptors above 2, so that the command does not inherit what the daemon was started
/// with.
#[expect(unsafe_code, reason = "only a number tells of a descriptor that somebody else opened")]
fn set_close_on_exec() -> std::io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse().ok()).filter(|number| *number > 2)
        else {
            continue;
        };
        // SAFETY: the descriptor was listed a moment ago, this process has one thread, and only a flag of it changes.
        let descriptor = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
        rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(())
}
