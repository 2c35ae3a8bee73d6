//! `chorusd top`, which `chorusctl top` runs: a screen with everything that happens, in a process of its own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_remote::{DaemonAddress, Host};
use chorus_top::Options;
use clap::Parser;

use crate::cli::{name_process_as_client, print_error, resolve_paths};

/// Screen of Chorus, for chorusctl
#[derive(Debug, Parser)]
#[command(name = "chorusd top")]
struct Args {
    /// The daemon's socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Machine whose daemon is shown, as for chorusctl
    #[arg(long, value_name = "[USER@]HOST", conflicts_with = "socket")]
    host: Option<String>,
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
    (arguments.next()? == "top").then(|| {
        name_process_as_client();
        main(arguments)
    })
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
    let daemon = match &args.host {
        Some(name) => {
            let host = Host::find(name, &places).map_err(|e| Error::invalid(e.message).hint(e.hint))?;
            DaemonAddress::Remote(Arc::new(host))
        }
        None => places.into(),
    };
    chorus_top::run(&Options { daemon, has_color: args.color, agent: args.agent, client: args.client })
}
