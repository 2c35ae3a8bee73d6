//! `chorusctl hooks`: commands that a coding tool runs by itself when a conversation starts, is compacted or ends.

mod install;
mod past;
mod run;
mod settings;
mod uninstall;

use crate::app::App;
use crate::error::Error;

/// Let Claude Code recall and save conversations automatically
///
/// After `hooks install claude-code`, Claude Code begins each conversation with a list of the earlier ones in the same project, and every
/// conversation is saved before it is compacted and when it ends. If no daemon is running, nothing happens.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  chorusctl hooks install claude-code      set it up in Claude Code\n  \
    chorusctl hooks uninstall claude-code    remove it"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
#[command(defer = true)]
enum Verb {
    /// Add the hooks to the settings of a coding tool
    Install(install::Args),
    /// Remove the hooks from the settings of a coding tool
    Uninstall(uninstall::Args),
    /// Handle an event, which the coding tool writes to standard input
    #[command(hide = true)]
    Run(run::Args),
}

/// A coding tool that runs hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Tool {
    /// Claude Code
    ClaudeCode,
}

pub fn run(args: &Args, app: &mut App) -> Result<(), Error> {
    app.use_this_machine("hooks")?;
    match &args.verb {
        Verb::Install(args) => install::run(args, app),
        Verb::Uninstall(args) => uninstall::run(args, app),
        Verb::Run(args) => {
            run::run(args, app);
            Ok(())
        }
    }
}
