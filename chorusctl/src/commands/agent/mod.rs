//! `chorusctl agent`: one module per subcommand.

use clap::Subcommand;

use crate::app::App;
use crate::error::Error;

pub mod config;
pub mod destroy;
pub mod export;
pub mod import;
pub mod init;
pub mod list;
pub mod show;
pub mod use_;

/// Make, list, choose and configure agents
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Verb {
    /// Make an agent, or revive one whose files were kept
    Init(init::Args),
    /// Save an agent's conversation and take the agent away
    Destroy(destroy::Args),
    /// List the agents
    List(list::Args),
    /// Show one agent
    Show(show::Args),
    /// Choose the agent that is meant when none is named
    Use(use_::Args),
    /// Show or change an agent's settings
    Config(config::Args),
    /// Write a whole agent into one file, for another home or machine
    Export(export::Args),
    /// Make an agent from such a file
    Import(import::Args),
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    match args.verb {
        Verb::Init(args) => init::run(args, app),
        Verb::Destroy(args) => destroy::run(args, app),
        Verb::List(args) => list::run(args, app),
        Verb::Show(args) => show::run(args, app),
        Verb::Use(args) => use_::run(args, app),
        Verb::Config(args) => config::run(args, app),
        Verb::Export(args) => export::run(args, app),
        Verb::Import(args) => import::run(&args, app),
    }
}
