//! Traces system calls of a running process with `strace`, counts them, and injects errors at the Nth.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::home::Home;
use crate::process;
use crate::wait::{DEADLINE, wait_until};
use crate::{Need, skip_without};

/// System calls that change files or sync them to the disk.
pub const FILE_CHANGING_CALLS: &str =
    "write,pwrite64,writev,pwritev2,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,ftruncate";

/// Role of a daemon's thread: its name, or for threads of the runtime which kind it is.
pub type ThreadRole = String;

/// One system call of an operation: the Nth of its kind in threads of one role.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallPoint {
    pub role: ThreadRole,
    pub call: String,
    pub number: u32,
}

/// A running `strace`. Dropping it detaches it.
#[derive(Debug)]
pub struct Strace {
    child: Child,
    output: PathBuf,
}

/// Returns true if processes may be traced here; otherwise skips the test.
#[must_use]
pub fn is_permitted(home: &Home) -> bool {
    let permitted = can_attach(home);
    if !permitted {
        skip_without(Need::Ptrace, "strace cannot be used here");
    }
    permitted
}

fn can_attach(home: &Home) -> bool {
    let Ok(mut other) = home.command("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn() else { return false };
    let attached = Strace::attach(home, &[other.id()], &["-e", "trace=none"]).is_some();
    _ = other.kill();
    _ = other.wait();
    attached
}

impl Strace {
    /// Attaches to `threads`; `None` if that is not permitted.
    #[must_use]
    pub fn attach(home: &Home, threads: &[u32], args: &[&str]) -> Option<Self> {
        let output = home.temp_dir().join("strace.out");
        let mut command = home.command("strace");
        command.args(["-y", "-s", "0", "-o"]).arg(&output).args(args);
        for thread in threads {
            command.arg("-p").arg(thread.to_string());
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let mut this = Self { child, output };
        let attached = wait_until("strace to attach", DEADLINE, || {
            let ended = this.child.try_wait().expect("a child to ask").is_some();
            let held = threads.iter().all(|thread| is_traced(*thread));
            (ended || held).then_some(held && !ended)
        });
        attached.then_some(this)
    }

    /// Returns the output; it is complete once the traced process has ended.
    #[must_use]
    pub fn read_output(&self) -> String {
        fs::read_to_string(&self.output).expect("the trace")
    }

    /// Waits for the exit of `strace`, when what it traces has ended.
    pub fn wait_for_exit(&mut self) {
        process::wait_for_exit(&mut self.child, "strace");
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        // After a child was waited for, its pid may belong to another process.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // Use SIGTERM, so that `strace` detaches from its threads before it ends.
        process::signal(self.child.id(), rustix::process::Signal::TERM);
        if !std::thread::panicking() {
            process::wait_for_exit(&mut self.child, "strace");
        }
        _ = self.child.kill();
    }
}

fn is_traced(thread: u32) -> bool {
    fs::read_to_string(format!("/proc/{thread}/status"))
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0")))
}

/// Returns the threads of a daemon by role.
#[must_use]
pub fn threads(pid: u32) -> BTreeMap<ThreadRole, Vec<u32>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the daemon's threads");
    let mut ids: Vec<u32> = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect();
    ids.sort_unstable();
    // The runtime gives its workers and its blocking threads the same name; the workers come first.
    let mut workers = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 4));
    let mut found: BTreeMap<ThreadRole, Vec<u32>> = BTreeMap::new();
    for id in ids {
        let Ok(name) = fs::read_to_string(format!("/proc/{pid}/task/{id}/comm")) else { continue };
        let role = match name.trim() {
            _ if id == pid => "worker",
            "chorusd" if workers > 0 => {
                workers -= 1;
                "worker"
            }
            "chorusd" => BLOCKING_ROLE,
            name => name,
        };
        found.entry(role.to_owned()).or_default().push(id);
    }
    found
}

/// Role of the runtime's threads for blocking file work, apart from the databases.
const BLOCKING_ROLE: &str = "blocking";

/// Returns the calls in a trace (`-f`) on files below `home`, without logs.
#[must_use]
pub fn call_points(trace: &str, threads: &BTreeMap<ThreadRole, Vec<u32>>, home: &Path) -> BTreeSet<CallPoint> {
    let below = home.to_string_lossy().into_owned();
    let log = home.join("log").to_string_lossy().into_owned();
    let mut counts: BTreeMap<(u32, String), u32> = BTreeMap::new();
    let mut points = BTreeSet::new();
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let (Ok(thread), Some((call, arguments))) = (thread.parse::<u32>(), rest.trim_start().split_once('(')) else {
            continue;
        };
        if !call.chars().all(|c| c.is_ascii_alphanumeric()) {
            continue;
        }
        let number = counts.entry((thread, call.to_owned())).or_default();
        *number += 1;
        if arguments.contains(&below) && !arguments.contains(&log) {
            // Threads that were started after the list was made are for blocking work; no other kind is started later.
            let role = threads.iter().find(|(_, ids)| ids.contains(&thread)).map_or(BLOCKING_ROLE, |(role, _)| role);
            points.insert(CallPoint { role: role.to_owned(), call: call.to_owned(), number: *number });
        }
    }
    points
}

/// Waits until the threads of `pid` do no more context switches.
pub fn wait_until_quiet(pid: u32) {
    let switches = || -> u64 {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
        let statuses = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
        let of = |status: String| -> u64 {
            let lines = status.lines().filter_map(|line| line.split_once("ctxt_switches:"));
            lines.filter_map(|(_, number)| number.trim().parse::<u64>().ok()).sum()
        };
        statuses.map(of).sum()
    };
    let (mut last, mut same) = (0, 0);
    wait_until("the daemon to be quiet", DEADLINE, || {
        let now = switches();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        (same >= 10).then_some(())
    });
}
