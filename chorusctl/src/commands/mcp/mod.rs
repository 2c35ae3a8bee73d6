//! `chorusctl mcp`: the MCP server, and its entry in the configuration of coding tools.

pub mod install;
mod serve;
mod toml_edit;
mod tool;
mod tool_config;
pub mod uninstall;

use crate::app::App;
use crate::error::Error;

/// Let coding tools search and keep conversations (MCP server)
///
/// Runs a server of the Model Context Protocol (MCP) on standard input and output. Coding tools start it automatically after `mcp install`; then their
/// models can search, read and list saved conversations, and recall what agents remember.
///
/// With --write they can also append messages, pin facts, remember, save, restore and resume. --agent and --conversation set what the tools act on.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_help_heading = "More",
    after_help = "Examples:\n  chorusctl mcp install claude-code            set it up in Claude Code\n  \
    chorusctl mcp install codex --write          and let Codex change things\n  \
    chorusctl --agent docs mcp install zed       for one agent\n  \
    chorusctl mcp uninstall zed                  remove it"
)]
pub struct Args {
    /// Include the tools that change something
    #[arg(long)]
    write: bool,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
#[command(defer = true)]
enum Verb {
    /// Add the server to the configuration of a coding tool
    Install(install::Args),
    /// Remove the server from the configuration of a coding tool
    Uninstall(uninstall::Args),
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.use_this_machine("mcp")?;
    match args.verb {
        None => serve::run(args.write, app),
        Some(Verb::Install(args)) => install::run(&args, app),
        Some(Verb::Uninstall(args)) => uninstall::run(&args, app),
    }
}
