//! `tasks.*`: commands that agents run in the background.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::method;

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

/// How a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TaskStatus {
    Running,
    /// It ended with 0.
    Completed,
    /// It ended with another number, or by a signal.
    Failed,
    /// Somebody ended it, or the daemon did because it stopped.
    Stopped,
    /// The daemon ended before it did: nobody knows what came of it.
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

/// A command in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Task {
    /// Short, and never used again in this home: `t12`.
    pub id: String,
    /// Name of the agent, as it is now.
    pub agent: String,
    pub command: String,
    /// Of its outermost process.
    pub pid: u32,
    pub status: TaskStatus,
    /// Null while it runs, and where it did not end by itself with one.
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// The file with what it printed.
    pub log_path: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Of every agent, destroyed ones too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_agents: bool,
    /// Index of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// At most so many; fewer come where the frame would get too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListResult {
    pub tasks: Vec<Task>,
    /// The `offset` to go on with; null at the end.
    pub next: Option<u64>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShowParams {
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShowResult {
    pub task: Task,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogsParams {
    pub id: String,
    /// Byte of the log to begin at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Where there is nothing more yet and the task runs, wait for more, for its end, or for some seconds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogsResult {
    pub task: Task,
    /// What is no UTF-8 is shown as U+FFFD; the file has the bytes. Empty where there is nothing more yet.
    pub data: String,
    /// The `offset` to go on with; null once the task has ended and all was read.
    pub next: Option<u64>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopParams {
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopResult {
    pub task: Task,
    /// Whether it ran until now.
    pub stopped: bool,
}
