//! The command line of the daemon. People use `chorusctl`; this is for it and for service managers.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use chorus_proto::methods::doctor::DoctorParams;
use chorus_proto::paths::places;
use clap::Parser;
use directories::BaseDirs;

use crate::daemon;
use crate::failure::{Failure, Result};

/// Keeps the conversations of AI agents.
///
/// Runs in the foreground and says `ready` on standard output when it takes connections. `chorusctl daemon start`
/// starts it in the background.
#[derive(Debug, Parser)]
#[command(name = "chorusd", version)]
struct Args {
    /// Listen at this socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Leave the terminal once connections are taken
    #[arg(long)]
    detach: bool,
    /// Make the index anew from the agents' directories, print what was found as JSON, and end; a damaged chorus.db is
    /// set aside first
    #[arg(long, conflicts_with = "detach")]
    rebuild: bool,
    /// Make sessions of everything that a damaged live.db still has, print what was found as JSON, and end; the damaged file
    /// is set aside
    #[arg(long, conflicts_with_all = ["detach", "rebuild"])]
    salvage: bool,
}

/// Runs the daemon until it is stopped.
pub fn main() -> ExitCode {
    // Not in the help: the daemon runs its own program inside the sandbox of a command.
    #[cfg(target_os = "linux")]
    if let Some(ended) = crate::sandbox::inside::stage(std::env::args_os().skip(1)) {
        return ended;
    }
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let mut err = std::io::stderr().lock();
            let _ = writeln!(err, "error: {failure}");
            if let Some(hint) = &failure.hint {
                let _ = writeln!(err, "hint: {hint}");
            }
            ExitCode::from(failure.kind.exit_status())
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let dirs = BaseDirs::new();
    let places = places(
        args.socket.as_deref(),
        |name| std::env::var_os(name),
        dirs.as_ref().map(BaseDirs::home_dir),
        dirs.as_ref().map(BaseDirs::config_dir),
    )
    .map_err(|e| Failure::invalid(e.to_string()).hint("set CHORUS_HOME to a directory of your own"))?;
    let places = places.absolute().map_err(|e| Failure::io("cannot tell the working directory", &e))?;
    if args.rebuild || args.salvage {
        let params = DoctorParams { rebuild: args.rebuild, salvage: args.salvage };
        let found = daemon::repair(&places, params)?;
        let found = serde_json::to_string(&found).map_err(|e| Failure::internal(e.to_string()))?;
        return writeln!(std::io::stdout(), "{found}").map_err(|e| Failure::io("cannot print what was found", &e));
    }
    daemon::run(&places, args.detach)
}
