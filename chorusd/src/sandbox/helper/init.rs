//! The first process of a sandbox: it buries what ends, and ends everything when the daemon says so or is gone, or when it is
//! more than may be.

use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, wait};

use super::memory_watchdog::MemoryWatchdog;
use super::{control_socket, with_context};
use crate::sandbox::protocol::{HelperReport, TERMINATE};

/// Waits for the command. Once it has ended no other process of the sandbox is left. `watch`: what bounds its memory.
///
/// # Errors
/// Children that cannot be waited for.
pub fn wait_for_command(command: &Child, watch: Option<MemoryWatchdog>) -> Result<HelperReport, String> {
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
            Err(e) => return Err(with_context("the command cannot be waited for")(e)),
        }
    }
}

/// Does something in a thread of its own, which needs little.
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

/// Tells every process.
fn signal_all(command: Pid, signal: Signal) {
    if getpid().is_init() {
        // As the group of number 1 is written -1, which is every process that this one may tell: those of its namespace.
        let _ = kill_process_group(Pid::INIT, signal);
        return;
    }
    let _ = kill_process_group(command, signal);
    for child in child_pids() {
        let _ = kill_process(child, signal);
    }
}

/// Ends every process.
fn kill_all(command: Pid) {
    signal_all(command, Signal::KILL);
    if getpid().is_init() {
        return;
    }
    // Without a namespace whoever loses its parent becomes a child of this one: until there is none.
    while child_pids().into_iter().map(|child| kill_process(child, Signal::KILL)).filter(Result::is_ok).count() > 0 {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        std::thread::yield_now();
    }
}

/// The children of this process.
fn child_pids() -> Vec<Pid> {
    let mut found = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(text.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
    }
    found
}
