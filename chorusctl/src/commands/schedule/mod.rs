//! `chorusctl schedule`: one module per subcommand.

use std::time::Duration;

use chorus_proto::methods::schedule::{RunOutcome, Schedule, ScheduleState};
use chorus_proto::shell_word::shell_word;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::app::App;
use crate::ui::time::{Clock, ZONED_TIME};
use crate::ui::{Style, sanitize};

pub mod add;
pub mod list;
pub mod pause;
pub mod remove;
pub mod resume;
pub mod run;
pub mod show;

group! {
    /// Send an agent a message at certain times
    enum Verb or only list {
        /// Add a schedule
        Add(add::Args),
        /// List an agent's schedules (default)
        List(list::Args),
        /// Show a schedule with its next times and its last runs
        Show(show::Args),
        /// Run a schedule now, besides its times
        Run(run::Args),
        /// Pause a schedule
        Pause(pause::Args),
        /// Resume a paused schedule
        Resume(resume::Args),
        /// Remove a schedule
        Remove(remove::Args),
    }
}

/// Says when a schedule is due, with the time zone of a cron expression.
fn describe_rule_with_zone(schedule: &Schedule) -> String {
    let zone = schedule.cron.as_ref().map(|_| format!(" ({})", sanitize::one_line(&schedule.time_zone)));
    format!("{}{}", describe_rule(schedule), zone.unwrap_or_default())
}

/// Says when a schedule is due: `0 7 * * mon-fri`, `every 4h`, `once`.
fn describe_rule(schedule: &Schedule) -> String {
    match (&schedule.cron, schedule.every_seconds) {
        (Some(cron), _) => sanitize::one_line(cron),
        (None, Some(seconds)) => {
            let text = humantime::format_duration(Duration::from_secs(seconds)).to_string();
            format!("every {}", text.replace("days", "d").replace("day", "d").replace(' ', ""))
        }
        (None, None) => "once".to_owned(),
    }
}

/// Returns the word for the state, and its style.
fn state_of(schedule: &Schedule) -> (Style, &'static str) {
    match (schedule.pending_at, schedule.state) {
        (Some(_), _) => (Style::Strong, "running"),
        (None, ScheduleState::Active) if schedule.next_at.is_none() => (Style::Plain, "suspended"),
        (None, ScheduleState::Active) => (Style::Good, "active"),
        (None, ScheduleState::Paused) => (Style::Plain, "paused"),
        (None, ScheduleState::Done) => (Style::Plain, "done"),
    }
}

/// Returns the word for an outcome, and its style.
fn outcome_of(outcome: RunOutcome) -> (Style, &'static str) {
    match outcome {
        RunOutcome::Ok => (Style::Good, "ok"),
        RunOutcome::Failed => (Style::Bad, "failed"),
        RunOutcome::Skipped => (Style::Plain, "skipped"),
    }
}

/// Returns the options that name the agent in a suggested command.
fn agent_option(agent: &str, app: &App) -> String {
    app.global.agent.as_ref().map_or_else(String::new, |_| format!("--agent {} ", shell_word(agent)))
}

/// Formats a time of a schedule with its time zone: that of the schedule if it has one, else that of this shell.
fn format_time(schedule: &Schedule, time: Timestamp, clock: &Clock) -> String {
    let zone = schedule.cron.as_ref().and_then(|_| TimeZone::get(&schedule.time_zone).ok());
    match zone {
        Some(zone) => time.to_zoned(zone).strftime(ZONED_TIME).to_string(),
        None => clock.zoned_date_time(time),
    }
}
