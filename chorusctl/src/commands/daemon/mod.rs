//! `chorusctl daemon`: one module per subcommand.

use clap::Subcommand;

use crate::app::App;
use crate::error::Error;

pub mod install;
pub mod logs;
pub mod restart;
pub mod start;
pub mod status;
pub mod stop;
mod stop_unreachable;
mod tail;
mod unit;
pub mod wait_exit;

/// Start, stop and watch the daemon
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Verb {
    /// Start the daemon
    Start(start::Args),
    /// Save every conversation and stop the daemon
    Stop(stop::Args),
    /// Stop the daemon and start it again
    Restart(restart::Args),
    /// Tell whether the daemon runs
    Status(status::Args),
    /// Show what the daemon logged
    Logs(logs::Args),
    /// Put a systemd user unit in place, so that the daemon runs from the start of the machine
    Install(install::Args),
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    match args.verb {
        Verb::Start(args) => start::run(args, app),
        Verb::Stop(args) => stop::run(args, app),
        Verb::Restart(args) => restart::run(args, app),
        Verb::Status(args) => status::run(args, app),
        Verb::Logs(args) => logs::run(args, app),
        Verb::Install(args) => install::run(&args, app),
    }
}
