//! Schedules: the operations `schedule.*`, the timer that waits for the next one that is due, and their runs.
//!
//! A run is claimed in the commit that gives its schedule the next time. The key of its message is made of the schedule and the time
//! at which it was due, so a run that is carried out again after a crash is the same turn.

pub mod add;
mod firing;
pub mod list;
pub mod pause;
pub mod remove;
pub mod resume;
pub mod run;
pub mod show;
mod timer;
pub(crate) mod transfer;
mod turn;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_base::sync::Mutex;
use chorus_catalog::{
    AuditDecision, AuditLog, ScheduleProgress, ScheduleRow, ScheduleRule, ScheduleState, ScheduleTable,
};
use chorus_clock::Clock;
use chorus_llm::Models;
use chorus_proto::ErrorKind;
use chorus_proto::methods::schedule as wire;
use chorus_schedule::{CronExpression, Timetable, find_zone};
use jiff::tz::TimeZone;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::KeyedMutex;
use crate::agent::agent_index::AgentEntry;
use crate::ops::agent::AgentResolver;

pub use timer::run as run_timer;

/// The schedules of all agents.
#[derive(Debug)]
pub struct Schedules {
    pub table: Arc<dyn ScheduleTable>,
    pub agents: Arc<AgentResolver>,
    pub audit: Arc<dyn AuditLog>,
    pub clock: Clock,
    models: Arc<Models>,
    /// The time zone of cron expressions that name none.
    pub zone: TimeZone,
    /// Serialises the changes of a schedule.
    changes: KeyedMutex<Uuid>,
    /// The schedules whose runs this process carries out.
    running: Mutex<HashSet<Uuid>>,
    /// Wakes the timer: a schedule was added or changed.
    changed: Notify,
}

impl Schedules {
    #[must_use]
    pub fn new(
        table: Arc<dyn ScheduleTable>,
        agents: Arc<AgentResolver>,
        audit: Arc<dyn AuditLog>,
        models: Arc<Models>,
        (clock, zone): (Clock, TimeZone),
    ) -> Self {
        let (changes, running, changed) = Default::default();
        Self { table, agents, audit, models, clock, zone, changes, running, changed }
    }

    /// Finds a schedule by the name of its agent and its own.
    ///
    /// # Errors
    /// `agent_not_found`; `not_found` with the nearest name.
    async fn find(&self, agent: Option<&str>, name: &str) -> Result<(Arc<AgentEntry>, ScheduleRow)> {
        let agent = self.agents.resolve(agent).await?;
        match self.table.find(agent.settings.id, name.to_owned()).await? {
            Some(row) => Ok((agent, row)),
            None => Err(self.unknown_error(&agent, name).await),
        }
    }

    /// Returns the error of a turn of an agent that has no model.
    fn missing_model(&self, agent: &AgentEntry) -> Option<Error> {
        let name = &agent.settings.name;
        agent.settings.model.is_none().then(|| crate::agent::no_model_error(name, &self.models))
    }

    async fn unknown_error(&self, agent: &AgentEntry, name: &str) -> Error {
        let (shown, agent_name): (String, _) = (name.chars().take(80).collect(), &agent.settings.name);
        let failure = Error::new(ErrorKind::NotFound, format!("agent {agent_name} has no schedule {shown:?}"));
        let known = self.table.list(Some(agent.settings.id), 0, 1000).await.unwrap_or_default();
        match closest_match(name, known.iter().map(|row| row.name.as_str())) {
            Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
            None => failure.hint(format!("list them: chorusctl --agent {agent_name} schedule list")),
        }
    }

    /// Changes the progress of a schedule. `change` returns false if nothing is to be changed. Returns the row, and whether it was
    /// changed; `None` if the schedule was removed.
    async fn change(
        &self,
        id: Uuid,
        mut change: impl FnMut(&mut ScheduleRow) -> Result<bool>,
    ) -> Result<Option<(ScheduleRow, bool)>> {
        let _alone = self.changes.lock(id).await;
        // Another attempt only if another process has changed the row, which had the agent until now.
        for _ in 0..3 {
            let Some(mut row) = self.table.get(id).await? else { return Ok(None) };
            if !change(&mut row)? {
                return Ok(Some((row, false)));
            }
            if self.table.update(row.clone()).await? {
                row.version += 1;
                return Ok(Some((row, true)));
            }
        }
        Err(Error::busy())
    }

    /// Describes a schedule for the protocol.
    fn describe(&self, row: ScheduleRow, agent_name: &str) -> wire::Schedule {
        let conversation = self.agents.index.conversations.by_origin(row.agent, &conversation_origin(row.id));
        let (mut cron, mut every_seconds, mut once_at) = (None, None, None);
        match row.rule {
            ScheduleRule::Cron(expression) => cron = Some(expression),
            ScheduleRule::EverySeconds(seconds) => every_seconds = Some(seconds),
            ScheduleRule::Once(at) => once_at = Some(at),
        }
        let ScheduleProgress { state, next_at, pending_at, overdue_at: _, runs } = row.progress;
        let state = match state {
            ScheduleState::Active => wire::ScheduleState::Active,
            ScheduleState::Paused => wire::ScheduleState::Paused,
            ScheduleState::Done => wire::ScheduleState::Done,
        };
        wire::Schedule {
            id: row.id,
            name: row.name,
            agent: agent_name.to_owned(),
            conversation: conversation.map(|row| row.name.clone()),
            cron,
            every_seconds,
            once_at,
            time_zone: row.time_zone,
            message: row.message,
            missed: row.missed,
            state,
            created_at: row.created_at,
            created_by: row.created_by,
            next_at,
            pending_at,
            runs,
        }
    }

    /// Records in the audit log that somebody changes the schedules of an agent.
    async fn audit_change(&self, agent: &AgentEntry, verb: &str, row: &ScheduleRow, by: &Requester) -> Result<()> {
        let text =
            serde_json::json!({"name": row.name, "when": describe_rule(row), "message": row.message}).to_string();
        let (old, new) = if verb == "remove" { (Some(text), None) } else { (None, Some(text)) };
        let decision = AuditDecision {
            at: self.clock.now(),
            agent: agent.settings.id,
            agent_name: agent.settings.name.clone(),
            turn: None,
            action: format!("schedule.{verb}"),
            decision: "changed".into(),
            rule: format!("schedule {verb}"),
            user: by.to_string(),
            old,
            new,
        };
        self.audit.append(decision).await
    }

    /// Lets the schedules of an agent that was restored be due again.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn resume_agent(&self, agent: Uuid) -> Result<()> {
        for row in self.table.list(Some(agent), 0, u64::from(add::MAX_SCHEDULES) * 2).await? {
            if row.progress.state == ScheduleState::Active && row.progress.next_at.is_none() {
                // One whose time zone is gone does not keep the others from being due.
                if let Err(failure) = self.change(row.id, |row| self.set_next(row)).await {
                    tracing::warn!(schedule = row.name, %failure, "cannot resume a schedule of a restored agent");
                }
            }
        }
        self.changed.notify_one();
        Ok(())
    }

    /// Makes a schedule active, with its next time from now on. Without one it is done.
    fn set_next(&self, row: &mut ScheduleRow) -> Result<bool> {
        let now = self.clock.now();
        let mut next = timetable(row)?.next_after(now);
        if let (None, ScheduleRule::Once(at)) = (next, &row.rule)
            && row.progress.runs.is_empty()
            && row.progress.pending_at.is_none()
        {
            // It has passed in the meantime, and was missed.
            next = Some(*at);
        }
        row.progress.next_at = next;
        row.progress.state = if next.is_some() { ScheduleState::Active } else { ScheduleState::Done };
        Ok(true)
    }
}

/// Names the purpose of the conversation in which a schedule runs.
fn conversation_origin(schedule: Uuid) -> String {
    format!("schedule:{schedule}")
}

/// Returns the times of a schedule.
///
/// # Errors
/// `internal` if the row has what another version has written.
fn timetable(row: &ScheduleRow) -> Result<Timetable> {
    let strange = |what: String| Error::internal(format!("schedule {}: {what}", row.name));
    Ok(match &row.rule {
        ScheduleRule::Cron(text) => Timetable::Cron {
            expression: CronExpression::parse(text).map_err(|problem| strange(problem.to_string()))?,
            zone: find_zone(&row.time_zone).ok_or_else(|| strange(format!("unknown time zone {}", row.time_zone)))?,
        },
        ScheduleRule::EverySeconds(seconds) => {
            Timetable::Every { start: row.created_at, interval: Duration::from_secs(*seconds) }
        }
        ScheduleRule::Once(at) => Timetable::Once { at: *at },
    })
}

/// Says in a few words when a schedule is due.
#[must_use]
pub fn describe_rule(row: &ScheduleRow) -> String {
    match &row.rule {
        ScheduleRule::Cron(text) => format!("{text} ({})", row.time_zone),
        ScheduleRule::EverySeconds(seconds) => {
            format!("every {}", humantime::format_duration(Duration::from_secs(*seconds)))
        }
        ScheduleRule::Once(at) => format!("once at {at}"),
    }
}
