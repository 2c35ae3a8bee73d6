//! `chorusctl daemon status`.

use chorus_proto::methods::daemon::{Status, StatusParams};

use crate::app::App;
use crate::commands::status;
use crate::connect;
use crate::error::Failure;

/// Tell whether the daemon runs
///
/// Starts none: exit status 0 where one runs, 4 where none does.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Tells it.
///
/// # Errors
/// Where no daemon runs.
pub fn run(_: Args, app: &mut App) -> Result<(), Failure> {
    let places = app.places()?;
    let client = connect::reach(places, &app.global)?.ok_or_else(|| connect::nobody(places))?;
    app.connected(client);
    app.answer::<Status>(&StatusParams::default(), |app, result| {
        let line = status::line(&app.out, &result.daemon);
        writeln!(app.out, "{line}")
    })
}
