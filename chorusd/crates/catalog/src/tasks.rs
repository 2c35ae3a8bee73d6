//! Rows of tasks, the commands in the background. Rows are never deleted.

use std::collections::HashMap;
use std::fmt::Debug;

use chorus_proto::methods::tasks::TaskStatus;
use jiff::Timestamp;
use uuid::Uuid;

use crate::{CatalogRead, CatalogWrite};

/// A row of the table of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// A letter and a number.
    pub id: String,
    pub agent: Uuid,
    /// The conversation that started it; `None` for `main`.
    pub conversation_id: Option<Uuid>,
    /// Name of the agent when the task was started.
    pub agent_name: String,
    pub command: String,
    pub pid: u32,
    /// Start time of the process, in clock ticks since the system booted.
    pub pid_started: u64,
    /// Identifies the boot of the system during which the task was started.
    pub boot: String,
    pub status: TaskStatus,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Path of the log, relative to the agent's directory.
    pub log_path: String,
}

/// Tasks in the table at the start of the daemon.
#[derive(Debug, Clone, Default)]
pub struct TasksAtStart {
    /// The highest number in an id.
    pub last: u64,
    /// Tasks whose end was not reported to their agents, ended or not, oldest first.
    pub unreported: Vec<TaskRow>,
    /// Number of ended tasks per agent.
    pub ended: HashMap<Uuid, u64>,
}

/// The table of background tasks.
pub trait TaskTable: Debug + Send + Sync {
    /// Inserts a task.
    fn insert(&self, row: TaskRow) -> CatalogWrite<()>;

    /// Records the end of a task: status, exit code, signal and time.
    fn update_end(&self, row: TaskRow) -> CatalogWrite<()>;

    /// Records that the end of a task was reported to its agent.
    fn mark_reported(&self, id: String) -> CatalogWrite<()>;

    /// Reads the state of the table at the start of the daemon.
    fn list_at_start(&self) -> CatalogRead<'_, TasksAtStart>;

    /// Lists the tasks of an agent whose end was not reported to it, ended or not, oldest first. Only a table that daemons
    /// share is asked for one agent.
    fn list_unreported(&self, _agent: Uuid) -> CatalogRead<'_, Vec<TaskRow>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Returns the task with this id.
    fn get(&self, id: String) -> CatalogRead<'_, Option<TaskRow>>;

    /// Returns tasks of one agent or of all: running ones first, then the others, newest first.
    fn list(&self, agent: Option<Uuid>, offset: u64, limit: u64) -> CatalogRead<'_, Vec<TaskRow>>;
}
