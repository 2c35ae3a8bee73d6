//! `chorusctl schedule resume`: resumes a schedule.

use chorus_proto::methods::schedule::{Resume, ResumeParams};

use super::format_time;
use crate::app::App;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Resume a paused schedule
///
/// It is due at its next time from now on.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the schedule
    #[arg(value_name = "SCHEDULE")]
    name: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Resume>(&ResumeParams { agent: app.agent(), name: args.name }, |app, done| {
        let name = sanitize::one_line(&done.schedule.name);
        let name = app.stdout.style(Style::Id, &name).to_string();
        let next = done.schedule.next_at.map(|time| format_time(&done.schedule, time, app.stdout.clock()));
        let next = next.map(|next| format!("; next: {next}")).unwrap_or_default();
        let line = if done.changed { format!("resumed {name}{next}") } else { format!("{name} is not paused{next}") };
        app.stdout.status_line(&line)
    })
}
