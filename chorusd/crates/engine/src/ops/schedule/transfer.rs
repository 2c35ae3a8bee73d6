//! Schedules in the file of an exported agent.

use chorus_base::new_id;
use chorus_base::requester::Requester;
use chorus_catalog::{ScheduleProgress, ScheduleRow, ScheduleRule, ScheduleState};
use chorus_proto::methods::schedule::MissedRuns;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::add::{check_message, check_schedule_name};
use super::timetable;

/// A schedule in the file. Its progress stays behind.
#[derive(Debug, Serialize, Deserialize)]
struct ExportedSchedule {
    name: String,
    cron: Option<String>,
    every_seconds: Option<u64>,
    once_at: Option<Timestamp>,
    time_zone: String,
    message: String,
    missed: MissedRuns,
    created_at: Timestamp,
}

/// Encodes schedules as JSON lines, except those that are done.
pub(crate) fn schedule_lines(rows: Vec<ScheduleRow>) -> Vec<u8> {
    let mut lines = Vec::new();
    for row in rows.into_iter().filter(|row| row.progress.state != ScheduleState::Done) {
        let (mut cron, mut every_seconds, mut once_at) = (None, None, None);
        match row.rule {
            ScheduleRule::Cron(expression) => cron = Some(expression),
            ScheduleRule::EverySeconds(seconds) => every_seconds = Some(seconds),
            ScheduleRule::Once(at) => once_at = Some(at),
        }
        let ScheduleRow { name, time_zone, message, missed, created_at, .. } = row;
        let line = ExportedSchedule { name, cron, every_seconds, once_at, time_zone, message, missed, created_at };
        // Serialising texts, numbers and times into memory cannot fail.
        if serde_json::to_writer(&mut lines, &line).is_ok() {
            lines.push(b'\n');
        }
    }
    lines
}

/// Reads a line of the file as a paused schedule of `agent`.
///
/// # Errors
/// The reason why it cannot be used.
pub(crate) fn parse_schedule(line: &str, agent: Uuid, now: Timestamp) -> Result<ScheduleRow, String> {
    let exported: ExportedSchedule = serde_json::from_str(line).map_err(|e| e.to_string())?;
    let ExportedSchedule { name, cron, every_seconds, once_at, time_zone, message, missed, created_at } = exported;
    check_schedule_name(&name).and_then(|()| check_message(&message)).map_err(|problem| problem.message)?;
    let rule = match (cron, every_seconds, once_at) {
        (Some(expression), None, None) => ScheduleRule::Cron(expression),
        (None, Some(seconds), None) if is_interval(seconds) => ScheduleRule::EverySeconds(seconds),
        (None, None, Some(at)) => ScheduleRule::Once(at),
        _ => return Err("it does not say when it is due".to_owned()),
    };
    let progress = ScheduleProgress {
        state: ScheduleState::Paused,
        next_at: None,
        pending_at: None,
        overdue_at: None,
        runs: Vec::new(),
    };
    let row = ScheduleRow {
        id: new_id(),
        agent,
        name,
        rule,
        time_zone,
        message,
        missed,
        created_at: created_at.min(now),
        created_by: Requester::Owner.to_string(),
        progress,
        version: 0,
    };
    timetable(&row).map_err(|problem| problem.message)?;
    Ok(row)
}

fn is_interval(seconds: u64) -> bool {
    let interval = std::time::Duration::from_secs(seconds);
    (chorus_schedule::MIN_INTERVAL..=chorus_schedule::MAX_INTERVAL).contains(&interval)
}
