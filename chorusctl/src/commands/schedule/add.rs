//! `chorusctl schedule add`: adds a schedule.

use std::time::Duration;

use chorus_proto::Blocked;
use chorus_proto::methods::schedule::{Add, AddParams, MissedRuns};

use super::{describe_rule_with_zone, format_time};
use crate::app::App;
use crate::commands::text_input;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Style, sanitize};

/// Add a schedule
///
/// Each time that it is due, the agent gets the message in the conversation `schedule-NAME`. The five fields of a cron expression are
/// minute, hour, day of the month, month and day of the week; @hourly, @daily, @weekly, @monthly and @yearly are names for common ones.
///
/// If the clocks are put forward or back, a time of day comes exactly once that day; hours that are given as `*` are counted as they
/// pass. docs/SCHEDULES.md has the details.
#[derive(Debug, clap::Args)]
#[command(override_usage = "\
chorusctl schedule add [OPTIONS] <NAME> <MESSAGE|->
         <--cron <EXPRESSION>|--every <DURATION>|--in <DURATION>>")]
#[command(after_help = "\
Examples:
  chorusctl schedule add standup --cron \"0 7 * * mon-fri\" \"Summarize open work.\"
  chorusctl schedule add inbox --every 4h \"Look at the new issues.\"
  chorusctl schedule add reminder --in 20m \"Check the deployment.\"")]
#[command(group(clap::ArgGroup::new("when").required(true).args(["cron", "every", "after"])))]
pub struct Args {
    /// Name of the schedule
    #[arg(value_name = "NAME")]
    name: String,
    /// Message that the agent gets; `-` reads standard input
    #[arg(value_name = "MESSAGE|-", allow_hyphen_values = true)]
    message: String,
    /// When it is due, as a cron expression of five fields
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    cron: Option<String>,
    /// Interval, counted from now, e.g. 4h; at least 1m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    every: Option<Duration>,
    /// Time until its only run, e.g. 20m
    #[arg(long = "in", id = "after", value_name = "DURATION", value_parser = duration)]
    after: Option<Duration>,
    /// Time zone of the expression, e.g. Europe/Berlin (default: the daemon's)
    #[arg(long, value_name = "ZONE", requires = "cron")]
    tz: Option<String>,
    /// Decides about runs that the daemon or a sleeping machine missed
    #[arg(long, value_enum, value_name = "WHAT", default_value = "run")]
    missed: Missed,
    /// Show the next times and add nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
}

/// Longest expression that is shown with a caret.
const MAX_POINTED_CHARS: usize = 60;

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Missed {
    /// One run replaces all of them
    Run,
    /// Nothing
    Skip,
}

fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) if duration.subsec_nanos() == 0 && !duration.is_zero() => Ok(duration),
        Ok(_) => Err("must be at least one second, and whole seconds".to_owned()),
        Err(error) => Err(format!("{error}; for example 20m or 4h")),
    }
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let message = match text_input::text_argument(Some(args.message), "schedule add", "send")? {
        Some(text) => text,
        None => text_input::strip_last_newline(text_input::read_stdin()?),
    };
    let params = AddParams {
        agent: app.agent(),
        name: args.name,
        message,
        cron: args.cron,
        every_seconds: args.every.map(|every| every.as_secs()),
        in_seconds: args.after.map(|wait| wait.as_secs()),
        time_zone: args.tz,
        missed: match args.missed {
            Missed::Run => MissedRuns::Run,
            Missed::Skip => MissedRuns::Skip,
        },
        dry_run: args.dry_run,
    };
    let added = app.call_and_print::<Add>(&params, |app, result| {
        let schedule = &result.schedule;
        let name = sanitize::one_line(&schedule.name);
        let name = app.stdout.style(Style::Id, &name).to_string();
        let (agent, rule) = (sanitize::one_line(&schedule.agent), describe_rule_with_zone(schedule));
        let verb = if result.added { "scheduled" } else { "would schedule" };
        app.stdout.status_line(&format!("{verb} {name} for {agent}: {rule}"))?;
        for time in &result.next {
            let line = format!("  {}", format_time(schedule, *time, app.stdout.clock()));
            app.stdout.status_line(&line)?;
        }
        if let Some(Blocked { reason, hint }) = &result.blocked {
            app.stdout.flush()?;
            app.stderr.warning(&format!("its runs would fail now: {}", sanitize::one_line(reason)));
            if let Some(hint) = hint {
                app.stderr.hint(&sanitize::one_line(hint));
            }
        }
        Ok(())
    });
    if let (Err(error), Some(expression)) = (&added, &params.cron) {
        point_at_mistake(app, expression, error.message());
    }
    added
}

/// Prints the expression with a caret below the character that the error names.
fn point_at_mistake(app: &App, expression: &str, message: &str) {
    let place = message.split_once("is not a cron expression: character ");
    let place = place.and_then(|(_, rest)| rest.split_once(':')?.0.parse::<usize>().ok());
    let is_plain =
        expression.len() <= MAX_POINTED_CHARS && expression.chars().all(|c| c == ' ' || c.is_ascii_graphic());
    if let Some(place) = place.filter(|_| is_plain && app.stdout.format() == OutputFormat::Text) {
        app.stderr.line(&format!("  {expression}\n  {:>place$}", "^"));
    }
}
