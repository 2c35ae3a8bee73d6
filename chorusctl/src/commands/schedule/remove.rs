//! `chorusctl schedule remove`: removes a schedule.

use chorus_proto::methods::schedule::{Remove, RemoveParams};

use super::describe_rule;
use crate::app::App;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Remove a schedule
///
/// A running one continues, and its conversation stays.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the schedule
    #[arg(value_name = "SCHEDULE")]
    name: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Remove>(&RemoveParams { agent: app.agent(), name: args.name }, |app, done| {
        let name = sanitize::one_line(&done.schedule.name);
        let line = format!("removed {} ({})", app.stdout.style(Style::Id, &name), describe_rule(&done.schedule));
        app.stdout.status_line(&line)
    })
}
