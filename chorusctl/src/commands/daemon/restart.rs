//! `chorusctl daemon restart`: stops the daemon and starts a new one.

use super::{start, stop};
use crate::app::App;
use crate::connect;
use crate::error::Error;

/// Restart the daemon
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    let was_running = stop::stop(app)?.is_some();
    let started = connect::start(app.paths()?, &app.global)?;
    let verb = match (was_running, started.is_ours) {
        (true, _) => "restarted",
        (false, true) => "started",
        (false, false) => start::ALREADY_RUNNING,
    };
    app.set_client(started.client);
    start::print_daemon(app, verb)
}
