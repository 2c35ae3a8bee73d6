//! `chorusctl schedule show`: prints one schedule.

use chorus_proto::methods::schedule::{MissedRuns, Show, ShowParams, ShowResult};

use super::{describe_rule, format_time, outcome_of, state_of};
use crate::app::App;
use crate::commands::agent::show::write_field;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Show a schedule with its next times and its last runs
///
/// The last 20 runs are listed, the newest first; of those that failed, the reason is below. The next times are in the time zone of the schedule.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the schedule
    #[arg(value_name = "SCHEDULE")]
    name: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Show>(&ShowParams { agent: app.agent(), name: args.name }, |app, shown| print(app, &shown))
}

fn print(app: &mut App, ShowResult { schedule, next }: &ShowResult) -> Result<(), Error> {
    let out = &mut app.stdout;
    let (name, (style, state)) = (sanitize::one_line(&schedule.name), state_of(schedule));
    let line = format!("{}  {}", out.style(Style::Id, &name), out.style(style, state));
    writeln!(out, "{line}")?;
    let (zone, missed) = (schedule.cron.as_ref().map(|_| &*schedule.time_zone), schedule.missed == MissedRuns::Skip);
    let created =
        format!("{} by {}", out.clock().zoned_date_time(schedule.created_at), sanitize::one_line(&schedule.created_by));
    let next: Vec<String> = next.iter().map(|time| format_time(schedule, *time, out.clock())).collect();
    for (field, value) in [
        ("agent", Some(&*schedule.agent)),
        ("conversation", schedule.conversation.as_deref()),
        ("message", Some(&*schedule.message)),
        ("created", Some(&*created)),
        ("missed runs", Some(if missed { "skipped" } else { "one run replaces them" })),
        ("when", Some(&*describe_rule(schedule))),
        ("time zone", zone),
        ("next", Some(&*next.join("\n")).filter(|next| !next.is_empty())),
    ] {
        if let Some(value) = value {
            write_field(out, field, value)?;
        }
    }
    if schedule.runs.is_empty() {
        return writeln!(out, "\nno runs yet");
    }
    writeln!(out, "\nLAST RUNS")?;
    for run in &schedule.runs {
        let (style, word) = outcome_of(run.outcome);
        let (due, ago) = (format_time(schedule, run.due_at, out.clock()), out.clock().ago(run.ended_at));
        let line = format!("  {due}  {}  ended {ago}", out.style(style, &format!("{word:<7}")));
        writeln!(out, "{line}")?;
        if let Some(error) = &run.error {
            writeln!(out, "    {}", sanitize::one_line(error))?;
        }
    }
    Ok(())
}
