//! `chorusctl web`: serves the pages for the browser, which are a part of the daemon's program.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::app::App;
use crate::connect::{OWN_NAME, daemon_program, spawn_error};
use crate::error::Error;
use crate::ui::stdout::OutputFormat;

/// Show everything in the browser, and answer there
///
/// Serves pages on this machine only, opens the browser and prints a link that works once. Conversations as they continue, with a box to answer in;
/// search as you type; the tree of saved conversations; usage and cost; approvals. `?` shows the keys. Ctrl-C ends it.
///
/// Over ssh the browser is on another machine: the link is printed with the command that forwards the port.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  chorusctl web                          open the browser\n  \
    chorusctl web --no-open --port 4180    only print the link\n  \
    chorusctl web --read-only              change nothing there")]
pub struct Args {
    /// Only print the link
    #[arg(long)]
    no_open: bool,
    /// Listen on this port instead of a free one
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Offer nothing that sends, answers or cancels
    #[arg(long)]
    read_only: bool,
}

pub fn run(args: &Args, app: &mut App) -> Result<(), Error> {
    app.refuse_host("web")?;
    if app.stdout.format() != OutputFormat::Text {
        return Err(Error::usage("`chorusctl web` has no JSON output").with_hint("other programs: docs/PROTOCOL.md"));
    }
    // Starts the daemon if none is running.
    app.client()?;
    app.disconnect();
    let program = daemon_program();
    let mut command = Command::new(&program);
    command.arg0(OWN_NAME).arg("web");
    if args.no_open {
        command.arg("--no-open");
    }
    if let Some(port) = args.port {
        command.args(["--port", &port.to_string()]);
    }
    if args.read_only {
        command.arg("--read-only");
    }
    if let Some(socket) = &app.global.socket {
        command.arg("--socket").arg(socket);
    }
    Err(spawn_error(&program, &command.exec()))
}
