//! `chorusctl context rewind`: drops the last turns of the context, or brings them back.

use chorus_proto::methods::context::{Rewind, RewindParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::units::pluralize;

/// Drop the last turns from the live conversation
///
/// A turn begins with a message of the user and ends before the next one. What was dropped can be had back with
/// `--undo` until the next message comes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Turns to drop [default: 1]
    #[arg(conflicts_with = "undo")]
    n: Option<u64>,
    /// Bring back what the last rewind dropped
    #[arg(long)]
    undo: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = RewindParams { agent: app.agent(), n: args.n, undo: args.undo };
    app.call_and_print::<Rewind>(&params, |app, result| {
        let moved = pluralize(result.moved, "message");
        let what =
            if args.undo { format!("{moved} came back") } else { format!("dropped {moved}; --undo brings them back") };
        app.stdout.status_line(&format!("{what} ({} in the context)", result.messages))
    })
}
