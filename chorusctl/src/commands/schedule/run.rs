//! `chorusctl schedule run`: runs a schedule now.

use chorus_proto::methods::schedule::{Run, RunParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Run a schedule now, besides its times
///
/// Does not wait for the reply: `chorusctl -C schedule-NAME chat` follows it, and `schedule list` shows how it ended.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the schedule
    #[arg(value_name = "SCHEDULE")]
    name: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Run>(&RunParams { agent: app.agent(), name: args.name }, |app, done| {
        let name = sanitize::one_line(&done.schedule.name);
        let line = format!("started a run of {}", app.stdout.style(Style::Id, &name));
        app.stdout.status_line(&line)
    })
}
