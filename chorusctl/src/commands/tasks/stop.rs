//! `chorusctl tasks stop`.

use chorus_proto::methods::tasks::{Stop, StopParams};

use super::state;
use crate::app::App;
use crate::error::Failure;
use crate::ui::{Style, safe};

/// End a task, and wait until it has ended
///
/// It is asked to end (SIGTERM), and after a few seconds it is killed, with all that it started. One that has ended already
/// is left as it is.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The task, such as t12
    #[arg(value_name = "ID")]
    id: String,
}

/// Stops it.
///
/// # Errors
/// Why it was not stopped.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    app.answer::<Stop>(&StopParams { id: args.id }, |app, done| {
        let id = safe::one_line(&done.task.id);
        let id = app.out.paint(Style::Id, &id);
        let line = match done.stopped {
            true => format!("stopped {id}: {}", safe::one_line(&done.task.command)),
            false => format!("{id} had ended already: {}", state(&done.task)),
        };
        app.out.done(&line)
    })
}
