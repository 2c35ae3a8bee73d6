//! Runs `perf` and reads its samples.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use chorus_tests::Home;
use chorus_tests::process::{signal, wait_for_exit};
use rustix::process::Signal;

/// Samples per second of processor time.
const FREQUENCY: u32 = 2_000;

/// A moment in which a thread ran.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Name of the thread.
    pub thread: String,
    /// Functions, from the one that ran to the one that started the thread.
    pub functions: Vec<String>,
}

/// How samples are taken.
#[derive(Debug)]
pub struct Recording {
    file: PathBuf,
    target: Vec<String>,
}

impl Recording {
    /// Of the threads of a process, and of those that it starts.
    pub fn of_process(home: &Home, pid: u32) -> Self {
        Self::new(home, vec!["--pid".into(), pid.to_string()])
    }

    /// Of everything on the machine.
    pub fn of_machine(home: &Home) -> Self {
        Self::new(home, vec!["--all-cpus".into()])
    }

    fn new(home: &Home, target: Vec<String>) -> Self {
        Self { file: home.temp_dir().join("samples"), target }
    }

    /// Takes samples while `work` runs.
    pub fn take(&self, work: impl FnOnce()) -> Vec<Sample> {
        self.take_some(|| {
            work();
            Vec::new()
        })
    }

    /// Takes samples while `work` runs, and returns those of the processes that it returns; of all, if it returns none.
    pub fn take_some(&self, work: impl FnOnce() -> Vec<u32>) -> Vec<Sample> {
        let mut perf = self.start();
        let pids = work();
        signal(perf.id(), Signal::INT);
        wait_for_exit(&mut perf, "perf record");
        parse(&read_script(&self.file, &pids))
    }

    fn start(&self) -> Child {
        let mut command = Command::new("perf");
        // Releases have no frame pointers; the unwinder of panics has what it takes.
        command.args(["record", "--quiet", "--call-graph", "dwarf,4096", "--freq", &FREQUENCY.to_string()]);
        command.arg("--output").arg(&self.file).args(&self.target);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("perf is installed")
    }
}

fn read_script(file: &Path, pids: &[u32]) -> String {
    let mut command = Command::new("perf");
    // To look up inlined functions takes minutes.
    command.args(["script", "--no-inline", "--fields", "comm,ip,sym", "--input"]).arg(file);
    if !pids.is_empty() {
        let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
        command.args(["--pid", &pids.join(",")]);
    }
    let done = command.stdin(Stdio::null()).output().expect("perf is installed");
    assert!(done.status.success(), "perf script: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Parses samples: a line with the name of the thread, a line for each function, and an empty line.
fn parse(script: &str) -> Vec<Sample> {
    let blocks = script.split("\n\n").filter(|block| !block.trim().is_empty());
    blocks
        .map(|block| {
            let mut lines = block.trim_start_matches('\n').lines();
            let thread = lines.next().unwrap_or_default().trim().to_owned();
            let functions = lines.filter_map(|line| Some(line.trim().split_once(' ')?.1.to_owned())).collect();
            Sample { thread, functions }
        })
        .collect()
}
