//! `chorusd top`, which `chorusctl top` runs: a screen with everything that happens, in a process of its own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use chorus_base::error::Result;
use chorus_top::Options;
use clap::Parser;

use crate::cli::{print_error, resolve_paths};

/// Screen of Chorus, for chorusctl
#[derive(Debug, Parser)]
#[command(name = "chorusd top")]
struct Args {
    /// The daemon's socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Show colors
    #[arg(long)]
    color: bool,
    /// Agent to select first
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Name under which others see it
    #[arg(long, value_name = "NAME", default_value = "top")]
    client: String,
}

/// Shows the screen if the arguments of the program ask for it.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == "top").then(|| main(arguments))
}

fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let args = Args::parse_from(std::iter::once("chorusd top".into()).chain(arguments));
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => print_error(&failure),
    }
}

fn run(args: Args) -> Result<()> {
    let places = resolve_paths(args.socket.as_deref())?;
    chorus_top::run(&Options { places, has_color: args.color, agent: args.agent, client: args.client })
}
