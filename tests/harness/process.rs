//! Processes by pid.

use std::fs;
use std::process::{Child, ExitStatus};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::{DEADLINE, wait_until};

/// Sends SIGKILL to `pid`. Succeeds if the process has already ended.
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Sends the signal `what` to `pid`. Succeeds if the process has already ended. After a `STOP` all its threads stand still.
pub fn signal(pid: u32, what: Signal) {
    if let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw)
        && kill_process(raw, what).is_ok()
        && what == Signal::STOP
    {
        wait_until("the process to stop", DEADLINE, || threads_stand_still(pid).then_some(()));
    }
}

/// Returns true if no thread of a process runs or can, and if it has ended.
fn threads_stand_still(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let states = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    let mut after_names = states.filter_map(|stat| Some(stat.rsplit_once(") ")?.1.to_owned()));
    after_names.all(|rest| rest.starts_with(['T', 't', 'Z', 'X']))
}

/// Makes child processes react to signals that this process ignores, as a shell's `&` or `nohup` arranges: Ctrl-C must
/// reach the commands that a test suite in the background starts. Installs a handler, which children do not inherit, so
/// this process still ignores them.
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

/// Returns true if `pid` exists and is not a zombie.
#[must_use]
pub fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
        !matches!(state, Some('Z' | 'X'))
    })
}

/// Returns the resident memory of `pid` in bytes.
#[must_use]
pub fn rss(pid: u32) -> u64 {
    read_status_bytes(pid, "VmRSS:")
}

/// Returns the resident memory of `pid` in bytes without that of files, such as the pages of its program that ran once.
#[must_use]
pub fn anonymous_memory(pid: u32) -> u64 {
    read_status_bytes(pid, "RssAnon:")
}

/// Returns the highest resident memory of `pid` so far, in bytes.
#[must_use]
pub fn peak_rss(pid: u32) -> u64 {
    read_status_bytes(pid, "VmHWM:")
}

/// Returns the processor time of all threads of `pid`.
#[must_use]
pub fn cpu_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process's stat");
    // proc_pid_stat(5): utime and stime are fields 14 and 15; field 2 may contain spaces and ends in `)`.
    let fields: Vec<_> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks = |field: usize| fields[field - 3].parse::<u64>().expect("a number");
    let per_second = rustix::param::clock_ticks_per_second();
    Duration::from_millis((ticks(14) + ticks(15)) * 1000 / per_second)
}

/// Waits until `pid` takes no processor time for a second, that is, less than a tick of the kernel's clock.
pub fn wait_for_calm_second(pid: u32) {
    let (mut before, mut calm) = (cpu_time(pid), Instant::now());
    wait_until("a calm second", DEADLINE * 4, || {
        let now = cpu_time(pid);
        if now != before {
            (before, calm) = (now, Instant::now());
        }
        (calm.elapsed() >= Duration::from_secs(1)).then_some(())
    });
}

fn read_status_bytes(pid: u32, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process's status");
    let line = status.lines().find_map(|line| line.strip_prefix(what)).expect("the line");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
}

/// Waits for the exit of `child`.
pub fn wait_for_exit(child: &mut Child, what: &str) -> ExitStatus {
    wait_until(&format!("{what} to end"), DEADLINE, || child.try_wait().expect("a child to wait for"))
}

#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the bytes that a process has read so far, from files and elsewhere.
#[must_use]
pub fn bytes_read(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).expect("what it reads and writes");
    let line = text.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("a count");
    line.trim().parse().expect("a number")
}
