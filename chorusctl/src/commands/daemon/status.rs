//! `chorusctl daemon status`.

use chorus_proto::methods::daemon::{Status, StatusParams};

use crate::app::App;
use crate::commands::status;
use crate::connect;
use crate::error::Failure;
use crate::ui::out::Format;

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
    // The line needs no agent; who asks for JSON gets them all.
    if app.out.format() != Format::Text {
        return app.answer::<Status>(&StatusParams::default(), |_, _| Ok(()));
    }
    let result = status::ask(app, 0)?;
    let line = status::line(&app.out, &result.daemon);
    writeln!(app.out, "{line}")
}
