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
    let verb = if stop::stop(app)?.is_some() { "restarted" } else { "started" };
    let client = connect::start(app.places()?, &app.global)?;
    app.connected(client);
    start::tell(app, verb)
}
