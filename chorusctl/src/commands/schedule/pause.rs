//! `chorusctl schedule pause`: pauses a schedule.

use chorus_proto::methods::schedule::{Pause, PauseParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Pause a schedule
///
/// It is not due until `schedule resume`. A running one continues.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the schedule
    #[arg(value_name = "SCHEDULE")]
    name: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Pause>(&PauseParams { agent: app.agent(), name: args.name }, |app, done| {
        let name = sanitize::one_line(&done.schedule.name);
        let name = app.stdout.style(Style::Id, &name).to_string();
        let line = if done.changed { format!("paused {name}") } else { format!("{name} is already paused") };
        app.stdout.status_line(&line)
    })
}
