//! Processes by their pid.

use std::fs;
use std::process::{Child, ExitStatus};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::{DEADLINE, wait_until};

/// `kill -9`. A process that is gone already is fine.
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Sends `what` to `pid`. A process that is gone already is fine.
pub fn signal(pid: u32, what: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        _ = kill_process(pid, what);
    }
}

/// Has what is started from here on heed the signals that a shell has its `&` commands ignore, or `nohup`: Ctrl-C has to
/// reach the commands of a suite in the background, too. The suite itself goes on ignoring them: a handler is not inherited.
///
/// # Panics
/// Where the system refuses a handler.
pub fn reset_signals_of_children() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or_default();
        for what in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
            if ignored & (1 << (what.as_raw() - 1)) != 0 {
                signal_hook::flag::register(what.as_raw(), Arc::new(AtomicBool::new(false))).expect("a handler");
            }
        }
    });
}

/// Whether `pid` is there and not a zombie.
#[must_use]
pub fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
        !matches!(state, Some('Z' | 'X'))
    })
}

/// Resident memory of `pid` in bytes.
///
/// # Panics
/// Where the process is not there.
#[must_use]
pub fn rss(pid: u32) -> u64 {
    read_status_bytes(pid, "VmRSS:")
}

/// The most resident memory `pid` ever had, in bytes.
///
/// # Panics
/// Where the process is not there.
#[must_use]
pub fn peak_rss(pid: u32) -> u64 {
    read_status_bytes(pid, "VmHWM:")
}

/// Processor time that all threads of `pid` have had.
///
/// # Panics
/// Where the process is not there.
#[must_use]
pub fn cpu_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process's stat");
    // proc_pid_stat(5): utime and stime are the 14th and 15th field; the 2nd may hold spaces, and ends in `)`.
    let fields: Vec<_> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks = |field: usize| fields[field - 3].parse::<u64>().expect("a number");
    let per_second = rustix::param::clock_ticks_per_second();
    Duration::from_millis((ticks(14) + ticks(15)) * 1000 / per_second)
}

fn read_status_bytes(pid: u32, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process's status");
    let line = status.lines().find_map(|line| line.strip_prefix(what)).expect("the line");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}

/// Waits for `child`.
///
/// # Panics
/// Where it does not end in time.
pub fn wait_for_exit(child: &mut Child, what: &str) -> ExitStatus {
    wait_until(&format!("{what} to end"), DEADLINE, || child.try_wait().expect("a child to wait for"))
}

#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Bytes that a process has read so far, from files and whatever else.
///
/// # Panics
/// Where the system does not tell.
#[must_use]
pub fn bytes_read(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).expect("what it reads and writes");
    let line = text.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("a count");
    line.trim().parse().expect("a number")
}
