//! The first process of a sandbox (its init): reaps children and kills all processes when the daemon asks for it or is
//! gone, or when they use too much memory.

use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, wait};

use super::memory_watchdog::MemoryWatchdog;
use super::{control_socket, with_context};
use crate::protocol::{HelperReport, TERMINATE};

/// Waits for the command. When this returns, no other process of the sandbox is left. `watch` bounds the memory.
pub(super) fn wait_for_command(command: &Child, watch: Option<MemoryWatchdog>) -> Result<HelperReport, String> {
    let command = Pid::from_child(command);
    spawn_thread(move || listen_for_requests(command)).map_err(with_context("cannot listen to the daemon"))?;
    let over = Arc::new(AtomicBool::new(false));
    if let Some(watch) = watch {
        let over = over.clone();
        let watching = spawn_thread(move || {
            watch.wait_until_exceeded();
            over.store(true, Ordering::Release);
            kill_all(command);
        });
        watching.map_err(with_context("cannot watch its memory"))?;
    }
    loop {
        match rustix::io::retry_on_intr(|| wait(WaitOptions::empty())) {
            Ok(Some((pid, status))) if pid == command => {
                if !getpid().is_init() {
                    kill_all(command);
                }
                return Ok(match (status.exit_status(), status.terminating_signal()) {
                    _ if over.load(Ordering::Acquire) => HelperReport::Memory,
                    (Some(code), _) => HelperReport::Code(code),
                    (None, signal) => HelperReport::Signal(signal.unwrap_or_default()),
                });
            }
            Ok(_) => {}
            Err(e) => return Err(with_context("cannot wait for the command")(e)),
        }
    }
}

/// Spawns a thread with a small stack.
fn spawn_thread(what: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().stack_size(64 << 10).spawn(what).map(drop)
}

fn listen_for_requests(command: Pid) {
    loop {
        match control_socket::receive_request() {
            Some(TERMINATE) => signal_all(command, Signal::TERM),
            Some(_) => {}
            None => break,
        }
    }
    kill_all(command);
}

/// Sends a signal to every process of the sandbox.
fn signal_all(command: Pid, signal: Signal) {
    if getpid().is_init() {
        // The group of process 1 is passed as -1, which means every process that this one may signal: those of its
        // namespace.
        let _ = kill_process_group(Pid::INIT, signal);
        return;
    }
    let _ = kill_process_group(command, signal);
    for child in child_pids() {
        let _ = kill_process(child, signal);
    }
}

/// Kills every process of the sandbox.
fn kill_all(command: Pid) {
    signal_all(command, Signal::KILL);
    if getpid().is_init() {
        return;
    }
    // Without a namespace, orphans become children of this process: repeat until there are none.
    while child_pids().into_iter().map(|child| kill_process(child, Signal::KILL)).filter(Result::is_ok).count() > 0 {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        std::thread::yield_now();
    }
}

/// Returns the children of this process.
fn child_pids() -> Vec<Pid> {
    let mut found = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(text.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
    }
    found
}
