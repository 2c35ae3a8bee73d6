//! `chorusctl context rewind`: drops the last turns of the context, or brings them back.

use chorus_proto::methods::context::{Rewind, RewindParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::units::pluralize;

/// Undo the last turns
///
/// A turn starts with a message from the user and ends before the next one. `--undo` restores them, until the next
/// message is added.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of turns to undo [default: 1]
    #[arg(conflicts_with = "undo")]
    n: Option<u64>,
    /// Restore the turns that were last undone
    #[arg(long)]
    undo: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    rewind(app, args.n, args.undo, "chorusctl context rewind --undo")
}

/// Removes the last `turns` turns, or with `undo` restores those that were removed last. `redo` is the command or option
/// that restores them.
pub fn rewind(app: &mut App, turns: Option<u64>, undo: bool, redo: &str) -> Result<(), Error> {
    let params = RewindParams { conversation: app.conversation(), agent: app.agent(), n: turns, undo };
    app.call_and_print::<Rewind>(&params, |app, result| {
        let moved = pluralize(result.moved, "message");
        let left = result.messages;
        app.stdout.status_line(&if undo {
            format!("restored {moved} ({left} in the conversation)")
        } else {
            format!("removed the last {moved} ({left} left); redo: {redo}")
        })
    })
}
