//! `chorusd web`, which `chorusctl web` runs: the pages in a browser, in a process of their own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use chorus_base::error::Result;
use chorus_web::Options;
use clap::Parser;

use crate::cli::{name_process_as_client, print_error, resolve_paths};

/// Pages of Chorus, for chorusctl
#[derive(Debug, Parser)]
#[command(name = "chorusd web")]
struct Args {
    /// The daemon's socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Listen on this port, by default a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Only print the link
    #[arg(long)]
    no_open: bool,
    /// Change nothing
    #[arg(long)]
    read_only: bool,
}

/// Serves the pages if the arguments of the program ask for it.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == "web").then(|| {
        name_process_as_client();
        main(arguments)
    })
}

fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let args = Args::parse_from(std::iter::once("chorusd web".into()).chain(arguments));
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => print_error(&failure),
    }
}

fn run(args: Args) -> Result<()> {
    let places = resolve_paths(args.socket.as_deref())?;
    let (port, is_read_only, opens_browser) = (args.port, args.read_only, !args.no_open);
    chorus_web::run(Options { places, port, is_read_only, opens_browser })
}
