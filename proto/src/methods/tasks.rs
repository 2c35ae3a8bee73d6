//! `tasks.*`: commands that agents run in the background.

use jiff::Timestamp;

use super::{method, wire};

method!(
    /// Lists tasks: running ones first, then the others, newest first.
    List = "tasks.list", ListParams => ListResult
);
method!(
    /// Returns one task.
    Show = "tasks.show", ShowParams => ShowResult
);
method!(
    /// Reads the output of a task in pages.
    Logs = "tasks.logs", LogsParams => LogsResult
);
method!(
    /// Ends a task, and answers once it has ended.
    Stop = "tasks.stop", StopParams => StopResult
);

/// Status of a task.
#[wire(Copy, PartialEq, Eq)]
pub enum TaskStatus {
    Running,
    /// It exited with status 0.
    Completed,
    /// It exited with another status, or was killed by a signal.
    Failed,
    /// Somebody stopped it, or the daemon did when it stopped.
    Stopped,
    /// The daemon ended first, so the result is unknown.
    Lost,
}

impl TaskStatus {
    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Lost => "lost",
        }
    }

    /// Returns the status of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Running, Self::Completed, Self::Failed, Self::Stopped, Self::Lost];
        all.into_iter().find(|status| status.as_str() == name)
    }
}

/// A background command.
#[wire(PartialEq, Eq)]
pub struct Task {
    /// A short id that is never reused in this home: `t12`.
    pub id: String,
    /// Current name of the agent.
    pub agent: String,
    pub command: String,
    /// Process id of its outermost process.
    pub pid: u32,
    pub status: TaskStatus,
    /// Exit status; null while the task runs, or if it did not exit with one.
    pub exit_code: Option<i32>,
    /// Number of the signal that killed it.
    #[omit_empty]
    pub signal: Option<i32>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// The file with its output.
    pub log_path: String,
}

#[wire(params)]
pub struct ListParams {
    pub agent: Option<String>,
    /// Include sessions of all agents, also deleted ones.
    pub all_agents: bool,
    /// Index of the first entry.
    pub offset: Option<u64>,
    /// Maximum number; fewer are returned if the frame would be too long.
    pub limit: Option<u64>,
}

#[wire(PartialEq)]
pub struct ListResult {
    pub tasks: Vec<Task>,
    /// The next `offset`; null at the end.
    pub next: Option<u64>,
}

#[wire(params)]
pub struct ShowParams {
    pub id: String,
}

#[wire(PartialEq)]
pub struct ShowResult {
    pub task: Task,
}

#[wire(params)]
pub struct LogsParams {
    pub id: String,
    /// Offset in the log, in bytes.
    pub offset: Option<u64>,
    /// If there is no new output and the task is running, wait for output, for its end, or for some seconds.
    pub wait: bool,
}

#[wire(PartialEq)]
pub struct LogsResult {
    pub task: Task,
    /// Bytes that are not UTF-8 are shown as U+FFFD; the file has the original. Empty if there is no new output.
    pub data: String,
    /// The next `offset`; null once the task has ended and everything was read.
    pub next: Option<u64>,
}

#[wire(params)]
pub struct StopParams {
    pub id: String,
}

#[wire(PartialEq)]
pub struct StopResult {
    pub task: Task,
    /// False if it had already ended.
    pub stopped: bool,
}
