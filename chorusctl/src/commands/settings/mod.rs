//! `chorusctl settings`: one module per subcommand; the default is `show`.

use clap::Subcommand;

use crate::app::App;
use crate::error::Error;

pub mod set;
pub mod show;

/// See the configuration in force, and set what agents have by default
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Verb {
    /// Show every key with its value and where that comes from; the same as no command
    Show(show::Args),
    /// Set default_model, permissions or idle_timeout, at once and for good
    Set(set::Args),
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    match args.verb {
        None => show::run(show::Args {}, app),
        Some(Verb::Show(args)) => show::run(args, app),
        Some(Verb::Set(args)) => set::run(args, app),
    }
}
