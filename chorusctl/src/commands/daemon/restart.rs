//! `chorusctl daemon restart`: stops the daemon and starts a new one.

use super::{start, stop};
use crate::app::App;
use crate::connect;
use crate::error::Error;

/// Restart the daemon
///
/// Checks the configuration first; if it cannot be used, the running daemon is not stopped.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    app.refuse_host("daemon restart")?;
    // A daemon that runs is not stopped for one that would not start.
    connect::check_config(app.global.socket.as_deref())
        .map_err(|error| error.with_detail("the running daemon was not stopped"))?;
    let verb = restart(app)?;
    start::print_daemon(app, verb)
}

/// Stops the daemon if one is running, and starts a new one. Returns a word for what was done.
pub fn restart(app: &mut App) -> Result<&'static str, Error> {
    let was_running = stop::stop(app)?.is_some();
    let started = connect::start(app.paths()?, &app.global)?;
    let verb = match (was_running, started.is_ours) {
        (true, _) => "restarted",
        (false, true) => "started",
        (false, false) => start::ALREADY_RUNNING,
    };
    app.set_client(started.client);
    Ok(verb)
}
