//! `chorusctl undo`: drops the last turns of the live conversation, or restores them.

use crate::app::App;
use crate::commands::context::rewind;
use crate::error::Error;

/// Undo the last turns
///
/// A turn starts with a message from the user and ends before the next one. The same as `context rewind`. `--redo`
/// restores what was undone, until the next message is added.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of turns to undo [default: 1]
    #[arg(conflicts_with = "redo", value_name = "N")]
    turns: Option<u64>,
    /// Restore what was last undone
    #[arg(long)]
    redo: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    rewind::rewind(app, args.turns, args.redo, "chorusctl undo --redo")
}
