//! `chorusctl session cat`: prints the JSON of a session.

use std::path::PathBuf;

use super::export;
use crate::app::App;
use crate::error::Error;

/// Print a saved conversation as JSON, for example for jq
///
/// Prints the session file, also if it is compressed on the disk:
///
///   chorusctl session cat latest | jq -r '.messages[-1].content'
///
/// `@` is the live conversation as it is now.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Saved conversation
    session: String,
    /// Write to this file, which is replaced (`-` is standard output)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Prints the session.
///
/// # Errors
/// The session does not exist or cannot be read; the output cannot be written.
pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    export::print_json(app, args.session, args.output)
}
