//! The inner stage: takes away what the command is not to have, then runs it.

use std::iter;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{
    DumpableBehavior, Signal, getpid, set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal,
    setsid,
};

use super::{failed, landlock, limits, line, powers, reap, seccomp, tree, watch};
use crate::sandbox::Way;
use crate::sandbox::places::SHARED;
use crate::sandbox::wire::{Memory, Reached, Report, Spec};

/// Confines this process, runs the command, and waits for its end.
///
/// # Errors
/// What could not be taken away, or a command that cannot be started.
pub fn run() -> Result<(), String> {
    let (spec, doors) = line::spec()?;
    keep_descriptors().map_err(failed("cannot keep its descriptors to itself"))?;
    if getpid().is_init() {
        // Whoever made the namespace has one thread, which lives as long as it does.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed("cannot end with the outer stage"))?;
    } else if spec.way == Way::None {
        set_child_subreaper(Some(getpid())).map_err(failed("cannot keep the command's processes together"))?;
    } else {
        return Err("this is no namespace of its own".into());
    }
    // Away from the daemon's terminal, where it has one; the leader of a session is away already.
    let _ = setsid();
    if spec.way == Way::Namespaces {
        tree::build(&spec.steps)?;
        if !spec.network {
            // Tests of all kinds talk to themselves; without it they fail, and nothing else does.
            let _ = super::namespaces::loopback_up();
        }
    }
    let joined = limits::join(&spec.groups, &doors);
    drop(doors);
    let bounded = limits::bound_namespace(spec.processes);
    powers::drop_all().map_err(failed("cannot give up its powers"))?;
    let (mut memory, processes) = limits::set(&spec, bounded, joined).map_err(failed("cannot set limits"))?;
    let watch = (memory == Memory::Watch).then(|| watch::Watch::new(spec.memory, private(&spec))).flatten();
    if memory == Memory::Watch && watch.is_none() {
        memory = Memory::Rlimit;
    }
    let landlock = landlock::restrict(&spec.writable).map_err(failed("Landlock"))?;
    let seccomp = seccomp::filter().map_err(failed("seccomp"))?;
    // Nobody else's memory and descriptors are read through /proc.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(failed("cannot hide from the command"))?;
    let [program, args @ ..] = &spec.argv[..] else { return Err("there is no command".into()) };
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(spec.env).current_dir(&spec.dir).stdin(Stdio::null());
    line::say(&Report::Ready(Reached { landlock, seccomp, processes, memory }));
    let child = std::os::unix::process::CommandExt::process_group(&mut command, 0)
        .spawn()
        .map_err(failed(format!("cannot run {}", program.display())))?;
    let ended = reap::reap(&child, watch)?;
    line::say(&ended);
    Ok(())
}

/// Directories that nobody else sees.
fn private(spec: &Spec) -> impl Iterator<Item = PathBuf> {
    let shared = iter::once(SHARED.into());
    spec.writable.iter().filter(|at| **at != spec.dir).cloned().chain(shared)
}

/// Whatever the daemon was started with beside its streams is not the command's.
#[expect(unsafe_code, reason = "only a number tells of a descriptor that somebody else opened")]
fn keep_descriptors() -> std::io::Result<()> {
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
