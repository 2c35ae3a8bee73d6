//! `chorusctl daemon restart`.

use super::{start, stop};
use crate::app::App;
use crate::connect;
use crate::error::Failure;

/// Stop the daemon and start it again
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Restarts it; where none runs, starts one.
///
/// # Errors
/// Why none runs now, or the old one still does.
pub fn run(_: Args, app: &mut App) -> Result<(), Failure> {
    let was_running = stop::stop(app)?.is_some();
    let started = connect::start(app.places()?, &app.global)?;
    let verb = match (was_running, started.is_ours) {
        (true, _) => "restarted",
        (false, true) => "started",
        (false, false) => start::RUNNING,
    };
    app.connected(started.client);
    start::tell(app, verb)
}
