//! Changes and lists the schedules of an agent for its own tools.

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_proto::methods::schedule::{AddParams, ListParams, RemoveParams, RunOutcome, Schedule, ScheduleState};

use crate::ops::Ops;
use crate::ops::conversations::session_scope::is_private;
use crate::ops::resolve_agent::with_expected_agent;
use crate::ops::schedule::{add, list, remove};
use crate::tools::{ScheduleRequest, ToolCaller};

/// Longest part of a message in the list, in characters.
const MAX_SHOWN_CHARS: usize = 100;

/// Carries out a request of an agent about its own schedules. Returns a text for the model.
///
/// # Errors
/// Those of the operations.
pub(super) async fn carry_out(ops: &Ops, asker: ToolCaller, request: ScheduleRequest) -> Result<String> {
    let (agent, schedules) = (Some(asker.agent_name.clone()), &*ops.schedules);
    let done = async {
        Ok(match request {
            ScheduleRequest::Add { name, message, cron, every_seconds, in_seconds, time_zone } => {
                let row = ops.agents.conversations.get(asker.conversation);
                if row.is_some_and(|row| is_private(&row)) {
                    return Err(Error::new(
                        ErrorKind::Denied,
                        "a schedule cannot be added in a private conversation, because everybody who talks with the agent sees its runs",
                    )
                    .hint("a person can add it: chorusctl schedule add"));
                }
                let params = AddParams {
                    agent,
                    name,
                    message,
                    cron,
                    every_seconds,
                    in_seconds,
                    time_zone,
                    ..AddParams::default()
                };
                let added = add::add_as(schedules, params, &asker.requester).await?;
                let next: Vec<String> = added.next.iter().map(ToString::to_string).collect();
                format!("scheduled {}; next: {}", added.schedule.name, next.join(", "))
            }
            ScheduleRequest::List => {
                let params = ListParams { agent, ..ListParams::default() };
                let listed = list::list(schedules, &ops.config, params).await?;
                let lines: Vec<String> = listed.schedules.iter().map(describe).collect();
                if lines.is_empty() { "you have no schedules".to_owned() } else { lines.join("\n") }
            }
            ScheduleRequest::Remove { name } => {
                let params = RemoveParams { agent, name };
                let removed = remove::remove_as(schedules, params, &asker.requester).await?;
                format!("removed {}", removed.schedule.name)
            }
        })
    };
    with_expected_agent(asker.agent, done).await
}

fn describe(schedule: &Schedule) -> String {
    let when = match (&schedule.cron, schedule.every_seconds) {
        (Some(cron), _) => format!("{cron} ({})", schedule.time_zone),
        (None, Some(seconds)) => format!("every {seconds} s"),
        (None, None) => "once".to_owned(),
    };
    let next = match (schedule.state, schedule.next_at) {
        (ScheduleState::Paused, _) => "paused".to_owned(),
        (ScheduleState::Done, _) => "done".to_owned(),
        (ScheduleState::Active, Some(next)) => format!("next {next}"),
        (ScheduleState::Active, None) => "suspended".to_owned(),
    };
    let last = schedule.runs.first().map(|run| match run.outcome {
        RunOutcome::Ok => ", last ok",
        RunOutcome::Failed => ", last failed",
        RunOutcome::Skipped => ", last skipped",
    });
    let message: String = schedule.message.chars().take(MAX_SHOWN_CHARS).collect();
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}: {when}, {next}{}: {message}", schedule.name, last.unwrap_or_default())
}
