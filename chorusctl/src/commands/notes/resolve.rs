//! `chorusctl notes resolve`: settles a conflict.

use chorus_proto::methods::notes::{Resolve, ResolveParams};
use chorus_proto::methods::session_branching::Side;

use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;

/// Sides of a conflict on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Keep {
    /// The statement that is named first
    A,
    /// The statement that is named second
    B,
}

/// Resolve a conflict: keep one side
///
/// Removes the notes with the other side's statement, and adds a decision that says which side is right. Merges and compactions find
/// conflicts; `notes list` shows them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of the conflict as `notes list` shows it, or its ID
    #[arg(value_name = "CONFLICT")]
    conflict: String,
    /// Side that is right
    #[arg(long, value_enum, ignore_case = true, value_name = "A|B", hide_possible_values = true)]
    keep: Keep,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let keep = match args.keep {
        Keep::A => Side::A,
        Keep::B => Side::B,
    };
    let params =
        ResolveParams { conversation: app.conversation(), agent: app.agent(), note: args.conflict, keep: Some(keep) };
    app.call_and_print::<Resolve>(&params, |app, result| {
        app.stdout.status_line(&format!("kept: {}", sanitize::one_line(&result.kept)))?;
        for note in &result.removed {
            app.stdout.status_line(&format!("removed: {}", sanitize::one_line(&note.text)))?;
        }
        Ok(())
    })
}
