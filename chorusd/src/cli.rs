//! The command line of the daemon, for `chorusctl` and service managers. People use `chorusctl`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chorus_base::error::{Error, Result};
use chorus_engine::backup;
use chorus_engine::ops::session::import::OnProgress;
use chorus_proto::error::exit;
use chorus_proto::methods::doctor::DoctorParams;
use chorus_proto::paths::{InstancePaths, is_runtime_dir, resolve};
use clap::Parser;
use directories::BaseDirs;

use crate::daemon;

/// Daemon that saves and resumes AI agents' conversations
///
/// Runs in the foreground and prints `ready` on standard output once it accepts connections. To start it in the
/// background: chorusctl daemon start
#[derive(Debug, Parser)]
#[command(name = "chorusd", version)]
struct Args {
    /// Listen on this socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Detach from the terminal once the daemon accepts connections
    #[arg(long)]
    detach: bool,
    /// Rebuild the index from the agents' directories, print the result as JSON, and exit; keeps a copy of a damaged
    /// chorus.db
    #[arg(long, conflicts_with = "detach")]
    rebuild: bool,
    /// Print the progress of a rebuild as lines of JSON before its result
    #[arg(long, requires = "rebuild")]
    progress: bool,
    /// Verify the backup at PATH, print the result as JSON, and exit; `-` reads an archive from standard input
    #[arg(long, value_name = "PATH", conflicts_with_all = ["detach", "rebuild"])]
    verify_backup: Option<PathBuf>,
    /// Restore the backup at PATH into an empty home, print the result as JSON, and exit
    #[arg(long, value_name = "PATH", conflicts_with_all = ["detach", "rebuild", "verify_backup"])]
    restore_backup: Option<PathBuf>,
    /// Save all readable messages of a damaged live.db as sessions, print the result as JSON, and exit; keeps a copy of
    /// the damaged file
    #[arg(long, conflicts_with_all = ["detach", "rebuild"])]
    salvage: bool,
    /// Check the configuration, print its path, whether the file exists, and its providers as JSON, and exit
    #[arg(long, conflicts_with_all = ["detach", "rebuild", "salvage"])]
    check_config: bool,
}

/// Runs the daemon until it is stopped.
pub fn main() -> ExitCode {
    // Not in the help: the daemon runs its own program as the helper inside a command's sandbox.
    #[cfg(target_os = "linux")]
    if let Some(ended) = chorus_sandbox::helper::run_stage(std::env::args_os().skip(1)) {
        return ended;
    }
    // Not in the help either: people use `chorusctl mcp`.
    if let Some(ended) = crate::mcp::run_if_asked() {
        return ended;
    }
    // Nor this: people use `chorusctl top`.
    if let Some(ended) = crate::top::run_if_asked() {
        return ended;
    }
    // Nor this: people use `chorusctl web`.
    if let Some(ended) = crate::web::run_if_asked() {
        return ended;
    }
    // Nor this: people use `chorusctl import`.
    if let Some(ended) = crate::read_database::run_if_asked() {
        return ended;
    }
    // Nor this: people use `chorusctl store copy`.
    if let Some(ended) = crate::copy_store::run_if_asked() {
        return ended;
    }
    // Nor this: people use `chorusctl config`.
    if let Some(ended) = crate::config_file::run_if_asked() {
        return ended;
    }
    // Nor this: people use `chorusctl cluster cert`.
    if let Some(ended) = crate::create_certificates::run_if_asked() {
        return ended;
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return print_usage(&error),
    };
    chorus_engine::lifecycle::malloc_trim::set_malloc_thresholds();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => print_error(&failure),
    }
}

/// Prints help and version to standard output, usage errors to standard error, and returns the exit status.
fn print_usage(error: &clap::Error) -> ExitCode {
    match error.print().and_then(|()| std::io::stdout().flush()) {
        Err(e) if !error.use_stderr() && e.kind() != std::io::ErrorKind::BrokenPipe => {
            print_error(&Error::internal(format!("failed to write the output: {e}")))
        }
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::USAGE)),
    }
}

/// Makes lists of processes show the name of chorusctl, which has started this one instead of itself. It is no daemon.
pub(crate) fn name_process_as_client() {
    // Only Linux has this file; elsewhere the arguments have the name.
    let _ = std::fs::write("/proc/self/comm", "chorusctl");
}

/// Prints the two lines of an error and returns its exit status.
pub(crate) fn print_error(failure: &Error) -> ExitCode {
    let mut err = std::io::stderr().lock();
    let _ = writeln!(err, "error: {failure}");
    if let Some(hint) = &failure.hint {
        let _ = writeln!(err, "hint: {hint}");
    }
    ExitCode::from(failure.exit_status())
}

/// Returns the absolute paths of this instance.
pub(crate) fn resolve_paths(socket: Option<&Path>) -> Result<InstancePaths> {
    let dirs = BaseDirs::new();
    let places = resolve(
        socket,
        |name| std::env::var_os(name),
        dirs.as_ref().map(BaseDirs::home_dir),
        dirs.as_ref().map(BaseDirs::config_dir),
        is_runtime_dir,
    )
    .map_err(|e| Error::invalid(e.to_string()).hint("set CHORUS_HOME to a directory that you own"))?;
    places.absolute().map_err(|e| Error::io("cannot determine the working directory", &e))
}

fn run(args: &Args) -> Result<()> {
    if let Some(source) = &args.verify_backup {
        return print_json(&backup::verify(source, &mut print_progress("bytes"))?);
    }
    let places = resolve_paths(args.socket.as_deref())?;
    if args.check_config {
        return print_json(&daemon::check_config(&places)?);
    }
    if args.rebuild || args.salvage {
        let params = DoctorParams { rebuild: args.rebuild, salvage: args.salvage };
        let progress: OnProgress =
            if args.progress { Box::new(print_progress("sessions")) } else { Box::new(|_, _| {}) };
        return print_json(&daemon::repair_home(&places, params, progress)?);
    }
    if let Some(source) = &args.restore_backup {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        return print_json(&backup::restore(source, &places.home, &mut print_progress("bytes"))?);
    }
    daemon::run(&places, args.detach)
}

/// Prints a result as a line of JSON.
pub(crate) fn print_json(found: &impl serde::Serialize) -> Result<()> {
    let found = serde_json::to_string(found).map_err(|e| Error::internal(e.to_string()))?;
    writeln!(std::io::stdout(), "{found}").map_err(|e| Error::io("cannot print the result", &e))
}

/// Returns a callback that prints the progress of work as lines of JSON before the result: one per half a percent, or per 16 MiB if
/// the total is not known, which is enough for a progress bar.
fn print_progress(unit: &'static str) -> impl FnMut(u64, u64) + Send {
    let mut told = 0;
    move |done, total| {
        let step = if total == 0 { 16 << 20 } else { total / 200 + 1 };
        if done.saturating_sub(told) >= step {
            told = done;
            let _ = writeln!(std::io::stdout(), r#"{{"done":{done},"total":{total},"unit":"{unit}"}}"#);
        }
    }
}
