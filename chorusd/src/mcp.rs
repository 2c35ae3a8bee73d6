//! `chorusd mcp`, which `chorusctl mcp` runs: an MCP server, in a process of its own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use chorus_base::error::{Error, Result};
use chorus_mcp::{Options, Scope};
use clap::Parser;

use crate::cli::{name_process_as_client, print_error, resolve_paths};

/// MCP server of Chorus, for chorusctl
#[derive(Debug, Parser)]
#[command(name = "chorusd mcp")]
struct Args {
    /// The daemon's socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Do not start the daemon
    #[arg(long)]
    no_autostart: bool,
    /// Offer tools that change something
    #[arg(long)]
    write: bool,
    /// Agent to name in requests
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Nobody named the agent: include imported conversations
    #[arg(long)]
    own: bool,
    /// Conversation to name in requests
    #[arg(long, value_name = "NAME")]
    conversation: Option<String>,
    /// Name of the agent that is created if there is none
    #[arg(long, value_name = "NAME", default_value = "default")]
    first_agent: String,
}

/// Runs the server if the arguments of the program ask for it.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == "mcp").then(|| {
        name_process_as_client();
        main(arguments)
    })
}

fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let args = Args::parse_from(std::iter::once("chorusd mcp".into()).chain(arguments));
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => print_error(&failure),
    }
}

fn run(args: Args) -> Result<()> {
    let places = resolve_paths(args.socket.as_deref())?;
    let daemon_program = match args.no_autostart {
        true => None,
        false => Some(std::env::current_exe().map_err(|e| Error::io("cannot find the program of the daemon", &e))?),
    };
    let scope =
        Scope { agent: args.agent, own: args.own, conversation: args.conversation, first_agent: args.first_agent };
    chorus_mcp::run(Options { places, socket: args.socket, daemon_program, scope, can_write: args.write })
}
