//! `chorusctl approvals`: one module per subcommand; the default is `list`.

use clap::Subcommand;

use crate::app::App;
use crate::error::Error;

pub mod approve;
pub mod deny;
pub mod format;
pub mod list;

/// See what waits for an answer, and answer it
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Verb {
    /// Show what waits for an answer; the same as no command
    List(list::Args),
    /// Let an action be done, once or from now on
    Approve(approve::Args),
    /// Refuse an action
    Deny(deny::Args),
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    match args.verb {
        None => list::run(list::Args::default(), app),
        Some(Verb::List(args)) => list::run(args, app),
        Some(Verb::Approve(args)) => approve::run(args, app),
        Some(Verb::Deny(args)) => deny::run(args, app),
    }
}
