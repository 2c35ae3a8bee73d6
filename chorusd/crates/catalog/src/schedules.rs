//! Schedules: messages that agents get at certain times.

use std::fmt::Debug;

use chorus_proto::methods::schedule::{MissedRuns, RunRecord};
use jiff::Timestamp;
use uuid::Uuid;

use crate::{CatalogRead, CatalogWrite};

/// Number of ended schedules of an agent that are kept.
pub const MAX_DONE_SCHEDULES: u32 = 20;

/// When a schedule is due. The interval counts from the creation of the schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleRule {
    Cron(String),
    EverySeconds(u64),
    Once(Timestamp),
}

/// Says if a schedule comes to be due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleState {
    Active,
    Paused,
    /// It has been due for the last time.
    Done,
}

impl ScheduleState {
    /// Returns the word in the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Done => "done",
        }
    }

    /// Returns the state of that word. The tables accept no other.
    #[must_use]
    pub fn parse(word: &str) -> Self {
        match word {
            "active" => Self::Active,
            "paused" => Self::Paused,
            _ => Self::Done,
        }
    }
}

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleRow {
    pub id: Uuid,
    pub agent: Uuid,
    /// Unique among the schedules of the agent.
    pub name: String,
    pub rule: ScheduleRule,
    /// Name of the time zone of a cron expression.
    pub time_zone: String,
    pub message: String,
    pub missed: MissedRuns,
    pub created_at: Timestamp,
    /// On whose behalf it was created.
    pub created_by: String,
    pub progress: ScheduleProgress,
    /// Grows by one with each change of the progress.
    pub version: i64,
}

/// The part of a schedule that changes as time passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleProgress {
    pub state: ScheduleState,
    /// When it is due next; `None` if it is paused, done, or its agent is destroyed.
    pub next_at: Option<Timestamp>,
    /// When the run was due that is under way.
    pub pending_at: Option<Timestamp>,
    /// When the run was due that comes after the one under way.
    pub overdue_at: Option<Timestamp>,
    /// The last runs, newest first.
    pub runs: Vec<RunRecord>,
}

/// Outcome of the insertion of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleInsertion {
    Inserted,
    /// The agent has a schedule with this name.
    NameTaken,
    /// The agent has as many schedules as it may have.
    LimitReached,
}

/// The place of a schedule among those with a run under way: when that run was due, and the id.
pub type PendingKey = (Timestamp, Uuid);

/// The table of schedules. In a cluster, those that are due are those of the agents that this process owns.
pub trait ScheduleTable: Debug + Send + Sync {
    /// Inserts a schedule, unless its agent has one with this name, or `limit` of them. A schedule that is done gives way to one
    /// with the same name. Of the others that are done, only the newest [`MAX_DONE_SCHEDULES`] are kept.
    fn insert(&self, row: ScheduleRow, limit: u32) -> CatalogWrite<ScheduleInsertion>;

    /// Stores the progress of a schedule, if it still has the version of `row`. Returns whether it had.
    fn update(&self, row: ScheduleRow) -> CatalogWrite<bool>;

    /// Deletes a schedule.
    fn delete(&self, row: ScheduleRow) -> CatalogWrite<()>;

    /// Deletes the schedules of an agent.
    fn delete_of_agent(&self, agent: Uuid) -> CatalogWrite<()>;

    /// Returns the agent's schedule with this name.
    fn find(&self, agent: Uuid, name: String) -> CatalogRead<'_, Option<ScheduleRow>>;

    /// Returns the schedule with this id.
    fn get(&self, id: Uuid) -> CatalogRead<'_, Option<ScheduleRow>>;

    /// Returns schedules of one agent or of all, by name; those of an agent are together.
    fn list(&self, agent: Option<Uuid>, offset: u64, limit: u64) -> CatalogRead<'_, Vec<ScheduleRow>>;

    /// Returns when the next schedule is due.
    fn first_due(&self) -> CatalogRead<'_, Option<Timestamp>>;

    /// Returns up to `limit` schedules that are due at `now`, the earliest first.
    fn due(&self, now: Timestamp, limit: u32) -> CatalogRead<'_, Vec<ScheduleRow>>;

    /// Returns up to `limit` schedules with a run under way, by the time when it was due and by id, those after `after`.
    fn pending(&self, after: Option<PendingKey>, limit: u32) -> CatalogRead<'_, Vec<ScheduleRow>>;
}

/// Returns the text of the runs in the table.
#[must_use]
pub fn runs_to_json(runs: &[RunRecord]) -> String {
    serde_json::to_string(runs).unwrap_or_else(|_| "[]".to_owned())
}

/// Reads the text of the runs in the table. Those that cannot be read are left out.
#[must_use]
pub fn runs_from_json(text: &str) -> Vec<RunRecord> {
    serde_json::from_str(text).unwrap_or_default()
}
