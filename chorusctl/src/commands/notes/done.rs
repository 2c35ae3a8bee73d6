//! `chorusctl notes done`: closes open tasks.

use chorus_proto::methods::notes::{Done, DoneParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;

/// Mark an open task as done
///
/// Removes it from the open tasks. Later compactions do not add it again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of the task as `notes list` shows it, or its ID
    #[arg(value_name = "TASK")]
    task: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = DoneParams { conversation: app.conversation(), agent: app.agent(), note: args.task };
    app.call_and_print::<Done>(&params, |app, result| {
        app.stdout.status_line(&format!("done: {}", sanitize::one_line(&result.note.text)))
    })
}
