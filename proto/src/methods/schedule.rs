//! `schedule.*`: messages that agents get at certain times.

use jiff::Timestamp;
use uuid::Uuid;

use super::{method, wire};
use crate::Blocked;

method!(
    /// Adds a schedule. Each time that it is due, its message starts a turn in a conversation of its own.
    Add = "schedule.add", AddParams => AddResult
);
method!(
    /// Lists schedules by name.
    List = "schedule.list", ListParams => ListResult
);
method!(
    /// Returns a schedule with its next times and its last runs.
    Show = "schedule.show", ShowParams => ShowResult
);
method!(
    /// Runs a schedule now, besides its times. The answer comes when the run is recorded, before its turn has ended.
    Run = "schedule.run", RunParams => RunResult
);
method!(
    /// Lets a schedule be due no more until it is resumed. A running one continues.
    Pause = "schedule.pause", PauseParams => PauseResult
);
method!(
    /// Lets a paused schedule be due again, at its next time from now on.
    Resume = "schedule.resume", ResumeParams => ResumeResult
);
method!(
    /// Removes a schedule. A running one continues, and its conversation stays.
    Remove = "schedule.remove", RemoveParams => RemoveResult
);

/// The policy for times that pass while the daemon is not running, while the machine sleeps, or while an earlier run has
/// not ended.
#[wire(Copy, PartialEq, Eq, Default)]
pub enum MissedRuns {
    /// One run replaces all of them.
    #[default]
    Run,
    /// Nothing.
    Skip,
}

impl MissedRuns {
    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Skip => "skip",
        }
    }

    /// Returns the value of that name; `run` for any other.
    #[must_use]
    pub fn parse(name: &str) -> Self {
        if name == "skip" { Self::Skip } else { Self::Run }
    }
}

/// State of a schedule.
#[wire(Copy, PartialEq, Eq)]
pub enum ScheduleState {
    Active,
    Paused,
    /// It has been due for the last time.
    Done,
}

/// Outcome of a run.
#[wire(Copy, PartialEq, Eq)]
pub enum RunOutcome {
    /// Its turn has ended with a reply.
    Ok,
    /// Its turn could not start, or has ended without a complete reply.
    Failed,
    /// It was missed, and the schedule skips missed runs.
    Skipped,
}

/// A run that has ended.
#[wire(PartialEq, Eq)]
pub struct RunRecord {
    /// When it was due.
    pub due_at: Timestamp,
    pub ended_at: Timestamp,
    pub outcome: RunOutcome,
    /// Its turn; null if none has started.
    pub turn_id: Option<Uuid>,
    /// Why it failed.
    #[omit_empty]
    pub error: Option<String>,
}

/// A schedule.
#[wire(PartialEq, Eq)]
pub struct Schedule {
    pub id: Uuid,
    pub name: String,
    /// Current name of the agent.
    pub agent: String,
    /// The conversation of its runs; null before the first one.
    pub conversation: Option<String>,
    /// The cron expression; null if something else says when.
    pub cron: Option<String>,
    /// The interval in seconds, counted from `created_at`.
    pub every_seconds: Option<u64>,
    /// When it is due once.
    pub once_at: Option<Timestamp>,
    /// Name of the time zone of the cron expression.
    pub time_zone: String,
    pub message: String,
    pub missed: MissedRuns,
    pub state: ScheduleState,
    pub created_at: Timestamp,
    /// On whose behalf it was created.
    pub created_by: String,
    /// When it is due next; null if it is paused or done.
    pub next_at: Option<Timestamp>,
    /// When the run was due that is running or about to; null if none is.
    pub pending_at: Option<Timestamp>,
    /// The last runs, at most 20, newest first.
    pub runs: Vec<RunRecord>,
}

#[wire(params)]
pub struct AddParams {
    pub agent: Option<String>,
    /// Unique among the schedules of the agent; valid names are those of agents.
    pub name: String,
    pub message: String,
    /// Five fields: minute, hour, day of the month, month, day of the week. Exactly one of `cron`, `every_seconds` and `in_seconds`
    /// is set.
    pub cron: Option<String>,
    /// Interval, at least 60.
    pub every_seconds: Option<u64>,
    /// Time until the only run, at least 1.
    pub in_seconds: Option<u64>,
    /// Name of the time zone of the cron expression, that of the daemon by default.
    pub time_zone: Option<String>,
    pub missed: MissedRuns,
    /// Check everything and add nothing.
    pub dry_run: bool,
}

#[wire(PartialEq, Eq)]
pub struct AddResult {
    pub schedule: Schedule,
    /// The next times, at most three.
    pub next: Vec<Timestamp>,
    /// False for a dry run.
    pub added: bool,
    /// Why its runs would fail now; null if nothing is known to be in the way.
    #[omit_empty]
    pub blocked: Option<Blocked>,
}

#[wire(params)]
pub struct ListParams {
    pub agent: Option<String>,
    /// List those of all agents.
    pub all_agents: bool,
    /// Index of the first entry.
    pub offset: Option<u64>,
    pub limit: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct ListResult {
    pub schedules: Vec<Schedule>,
    /// The next `offset`; null at the end.
    pub next: Option<u64>,
}

#[wire(params)]
pub struct ShowParams {
    pub agent: Option<String>,
    pub name: String,
}

#[wire(PartialEq, Eq)]
pub struct ShowResult {
    pub schedule: Schedule,
    /// The next times, at most three; empty if it is paused, suspended or done.
    pub next: Vec<Timestamp>,
}

#[wire(params)]
pub struct RunParams {
    pub agent: Option<String>,
    pub name: String,
}

#[wire(PartialEq, Eq)]
pub struct RunResult {
    pub schedule: Schedule,
}

#[wire(params)]
pub struct PauseParams {
    pub agent: Option<String>,
    pub name: String,
}

#[wire(PartialEq, Eq)]
pub struct PauseResult {
    pub schedule: Schedule,
    /// False if it was paused already.
    pub changed: bool,
}

#[wire(params)]
pub struct ResumeParams {
    pub agent: Option<String>,
    pub name: String,
}

#[wire(PartialEq, Eq)]
pub struct ResumeResult {
    pub schedule: Schedule,
    /// False if it was not paused.
    pub changed: bool,
}

#[wire(params)]
pub struct RemoveParams {
    pub agent: Option<String>,
    pub name: String,
}

#[wire(PartialEq, Eq)]
pub struct RemoveResult {
    pub schedule: Schedule,
}
