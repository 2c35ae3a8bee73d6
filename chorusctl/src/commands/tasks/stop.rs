//! `chorusctl tasks stop`: ends a task.

use chorus_proto::methods::tasks::{Stop, StopParams};

use super::describe_state;
use crate::app::App;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Stop a task and wait until it has ended
///
/// Sends SIGTERM and, after a few seconds, SIGKILL to the task and everything it started. A task that has already ended is unchanged.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Task, e.g. t12
    #[arg(value_name = "ID")]
    id: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Stop>(&StopParams { id: args.id }, |app, done| {
        let id = sanitize::one_line(&done.task.id);
        let id = app.stdout.style(Style::Id, &id);
        let line = match done.stopped {
            true => format!("stopped {id}: {}", sanitize::one_line(&done.task.command)),
            false => format!("{id} has already ended: {}", describe_state(&done.task)),
        };
        app.stdout.status_line(&line)
    })
}
