//! System calls of a running process: counted, and struck at the Nth, by `strace`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::home::Home;
use crate::process;
use crate::wait::{DEADLINE, wait_until};
use crate::{Need, skip_without};

/// The calls that change files or bring them to the disk.
pub const CHANGES: &str =
    "write,pwrite64,writev,pwritev2,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,ftruncate";

/// A thread of the daemon by what it does: its name, and of the runtime's which kind it is.
pub type Role = String;

/// One call among those that a verb makes: the Nth of its kind in threads of one role.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    pub role: Role,
    pub call: String,
    pub number: u32,
}

/// `strace` on some threads of a process. Dropping it lets them go.
#[derive(Debug)]
pub struct Strace {
    child: Child,
    output: PathBuf,
}

/// Whether programs may be traced here; says so where not.
#[must_use]
pub fn permitted(home: &Home) -> bool {
    let permitted = attaches(home);
    if !permitted {
        skip_without(Need::Ptrace, "strace cannot be used here");
    }
    permitted
}

fn attaches(home: &Home) -> bool {
    let Ok(mut other) = home.command("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn() else { return false };
    let attached = Strace::attach(home, &[other.id()], &["-e", "trace=none"]).is_some();
    _ = other.kill();
    _ = other.wait();
    attached
}

impl Strace {
    /// Attaches to `threads`; `None` where that is not permitted.
    ///
    /// # Panics
    /// Where it neither attaches nor ends.
    #[must_use]
    pub fn attach(home: &Home, threads: &[u32], args: &[&str]) -> Option<Self> {
        let output = home.outside().join("strace.out");
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

    /// The output, once the traced process has ended or as far as it is written.
    ///
    /// # Panics
    /// Where there is none.
    #[must_use]
    pub fn output(&self) -> String {
        fs::read_to_string(&self.output).expect("the trace")
    }

    /// Waits for the end of what it traces.
    pub fn wait(&mut self) {
        process::wait(&mut self.child, "strace");
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        // A child that was waited for has given its number back, and somebody else may have it by now.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // SIGTERM, so that it lets its threads go before it ends.
        process::signal(self.child.id(), rustix::process::Signal::TERM);
        if !std::thread::panicking() {
            process::wait(&mut self.child, "strace");
        }
        _ = self.child.kill();
    }
}

fn is_traced(thread: u32) -> bool {
    fs::read_to_string(format!("/proc/{thread}/status"))
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0")))
}

/// The threads of a daemon by role.
///
/// # Panics
/// Where the process is not there.
#[must_use]
pub fn threads(pid: u32) -> BTreeMap<Role, Vec<u32>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the daemon's threads");
    let mut ids: Vec<u32> = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect();
    ids.sort_unstable();
    // The runtime names its workers and its threads for blocking work alike; the workers come first.
    let mut workers = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 4));
    let mut found: BTreeMap<Role, Vec<u32>> = BTreeMap::new();
    for id in ids {
        let Ok(name) = fs::read_to_string(format!("/proc/{pid}/task/{id}/comm")) else { continue };
        let role = match name.trim() {
            _ if id == pid => "worker",
            "chorusd" if workers > 0 => {
                workers -= 1;
                "worker"
            }
            "chorusd" => BLOCKING,
            name => name,
        };
        found.entry(role.to_owned()).or_default().push(id);
    }
    found
}

/// Threads that work with files, apart from the databases.
const BLOCKING: &str = "blocking";

/// The points of a trace (`-f`) that lie on files below `home`; logs are not among them.
#[must_use]
pub fn points(trace: &str, threads: &BTreeMap<Role, Vec<u32>>, home: &Path) -> BTreeSet<Point> {
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
            // A thread that came since is one for blocking work: no other kind comes.
            let role = threads.iter().find(|(_, ids)| ids.contains(&thread)).map_or(BLOCKING, |(role, _)| role);
            points.insert(Point { role: role.to_owned(), call: call.to_owned(), number: *number });
        }
    }
    points
}

/// Waits until no thread of `pid` does anything any more; one that has ended does nothing.
///
/// # Panics
/// Where that does not come.
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
