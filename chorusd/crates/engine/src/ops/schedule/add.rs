//! The operation `schedule.add`.

use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_base::new_id;
use chorus_base::requester::Requester;
use chorus_catalog::{ScheduleInsertion, ScheduleProgress, ScheduleRow, ScheduleRule, ScheduleState};
use chorus_config::agent::check_name;
use chorus_proto::methods::schedule::{AddParams, AddResult};
use chorus_proto::{Blocked, ErrorKind};
use chorus_schedule::{CronExpression, MAX_INTERVAL, MIN_INTERVAL, Timetable, find_zone, zone_name};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Schedules;

/// The limit on schedules of one agent, not counting those that are done.
pub(crate) const MAX_SCHEDULES: u32 = 100;

/// The limit on the length of a name: the conversation `schedule-NAME` is a valid name, too.
const MAX_NAME_CHARS: usize = 47;

/// The limit on the length of a message, in bytes.
const MAX_MESSAGE_LEN: usize = 32 << 10;

/// Number of next times in an answer.
pub(super) const SHOWN_TIMES: usize = 3;

/// Adds a schedule for an agent.
///
/// # Errors
/// `agent_not_found`, `invalid_name`, `invalid_params` with the place of a mistake in a cron expression, `already_exists`,
/// `limit_reached`.
pub async fn add(schedules: &Schedules, params: AddParams) -> Result<AddResult> {
    add_as(schedules, params, &Requester::Owner).await
}

/// Like [`add`], on behalf of `by`.
///
/// # Errors
/// As [`add`].
pub async fn add_as(schedules: &Schedules, params: AddParams, by: &Requester) -> Result<AddResult> {
    let now = schedules.clock.now();
    check_schedule_name(&params.name)?;
    check_message(&params.message)?;
    let (rule, times, zone) = parse_rule(&params, now, &schedules.zone)?;
    let next = times.next_times(now, SHOWN_TIMES);
    let Some(first) = next.first().copied() else {
        return Err(Error::invalid("the schedule is never due").hint("choose another time"));
    };
    let agent = schedules.agents.resolve(params.agent.as_deref()).await?;
    let row = ScheduleRow {
        id: new_id(),
        agent: agent.settings.id,
        name: params.name,
        rule,
        time_zone: zone,
        message: params.message,
        missed: params.missed,
        created_at: now,
        created_by: by.to_string(),
        progress: ScheduleProgress {
            state: ScheduleState::Active,
            next_at: Some(first),
            pending_at: None,
            overdue_at: None,
            runs: Vec::new(),
        },
        version: 0,
    };
    let agent_name = &agent.settings.name;
    let blocked =
        schedules.missing_model(&agent).map(|failure| Blocked { reason: failure.message, hint: failure.hint });
    let known = schedules.table.find(row.agent, row.name.clone()).await?;
    if known.is_some_and(|known| known.progress.state != ScheduleState::Done || known.progress.pending_at.is_some()) {
        return Err(exists_error(agent_name, &row.name));
    }
    if params.dry_run {
        return Ok(AddResult { schedule: schedules.describe(row, agent_name), next, added: false, blocked });
    }
    match schedules.table.insert(row.clone(), MAX_SCHEDULES).await? {
        ScheduleInsertion::Inserted => {}
        ScheduleInsertion::NameTaken => return Err(exists_error(agent_name, &row.name)),
        ScheduleInsertion::LimitReached => {
            let what = format!("{agent_name} already has {MAX_SCHEDULES} schedules, which is the limit");
            return Err(Error::new(ErrorKind::LimitReached, what)
                .hint(format!("remove some: chorusctl --agent {agent_name} schedule remove NAME")));
        }
    }
    if let Err(failure) = schedules.audit_change(&agent, "add", &row, by).await {
        schedules.table.delete(row).await?;
        return Err(failure);
    }
    schedules.changed.notify_one();
    Ok(AddResult { schedule: schedules.describe(row, agent_name), next, added: true, blocked })
}

fn exists_error(agent: &str, name: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("agent {agent} already has a schedule {name}"))
        .hint(format!("choose another name, or remove it: chorusctl --agent {agent} schedule remove {name}"))
}

/// Checks a name: those of schedules follow the rules for names of agents.
pub(crate) fn check_schedule_name(name: &str) -> Result<()> {
    check_name(name)
        .map_err(|failure| Error { message: failure.message.replace("agent name", "schedule name"), ..failure })?;
    if name.len() > MAX_NAME_CHARS {
        return Err(Error::new(ErrorKind::InvalidName, format!("the schedule name {name:.40}… is too long"))
            .hint(format!("it has {} characters; use at most {MAX_NAME_CHARS}", name.len())));
    }
    Ok(())
}

pub(super) fn check_message(message: &str) -> Result<()> {
    if message.trim().is_empty() {
        return Err(Error::invalid("the message is empty").hint("say what the agent is to do"));
    }
    if message.len() > MAX_MESSAGE_LEN || message.contains('\0') {
        let what = format!("the message has a NUL character, or more than {} KiB", MAX_MESSAGE_LEN >> 10);
        return Err(Error::invalid(what).hint("put the text into a file in docs/ and name that file"));
    }
    Ok(())
}

/// Returns when a schedule is due: the rule, its times, and the name of its time zone.
fn parse_rule(params: &AddParams, now: Timestamp, default: &TimeZone) -> Result<(ScheduleRule, Timetable, String)> {
    let zone = match &params.time_zone {
        None => default.clone(),
        Some(name) => find_zone(name).ok_or_else(|| {
            let shown: String = name.chars().take(80).collect();
            Error::invalid(format!("unknown time zone {shown:?}")).hint("use a name such as Europe/Berlin or UTC")
        })?,
    };
    let name = zone_name(&zone);
    if name.is_none() && params.cron.is_some() && !zone.to_offset(now).is_zero() {
        let what = "the daemon does not know the name of its time zone";
        return Err(Error::invalid(what).hint("name one, for example Europe/Berlin"));
    }
    let name = name.unwrap_or("UTC").to_owned();
    if params.time_zone.is_some() && params.cron.is_none() {
        return Err(
            Error::invalid("a time zone needs a cron expression").hint("set `cron`, or leave the time zone out")
        );
    }
    match (&params.cron, params.every_seconds, params.in_seconds) {
        (Some(text), None, None) => {
            let expression = CronExpression::parse(text).map_err(|problem| {
                let shown: String = text.chars().take(200).collect();
                Error::invalid(format!("{shown:?} is not a cron expression: {problem}")).hint(
                    "use five fields: minute, hour, day of the month, month, day of the week; for example 0 7 * * mon-fri",
                )
            })?;
            // As it will be read from the row.
            let zone = find_zone(&name).unwrap_or(TimeZone::UTC);
            Ok((ScheduleRule::Cron(text.trim().to_owned()), Timetable::Cron { expression, zone }, name))
        }
        (None, Some(seconds), None) => {
            let interval = Duration::from_secs(seconds);
            if !(MIN_INTERVAL..=MAX_INTERVAL).contains(&interval) {
                return Err(Error::invalid("the interval must be from 1 minute to 10 years").hint("for example 4h"));
            }
            Ok((ScheduleRule::EverySeconds(seconds), Timetable::Every { start: now, interval }, name))
        }
        (None, None, Some(seconds)) => {
            let wait = Duration::from_secs(seconds);
            let at = now.checked_add(wait).ok().filter(|_| wait <= MAX_INTERVAL && !wait.is_zero());
            let at = at.ok_or_else(|| {
                Error::invalid("the time until the run must be from 1 second to 10 years").hint("for example 20m")
            })?;
            Ok((ScheduleRule::Once(at), Timetable::Once { at }, name))
        }
        _ => Err(Error::invalid(
            "a schedule needs exactly one of a cron expression, an interval and a time until its run",
        )
        .hint("set one of `cron`, `every_seconds` and `in_seconds`")),
    }
}
