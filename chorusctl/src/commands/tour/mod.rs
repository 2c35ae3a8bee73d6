//! `chorusctl tour`: the whole story, told by really running it.

use crate::app::App;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;

mod cleanup;
mod steps;
mod temp_home;

use temp_home::TempHome;

/// See the whole story in ten seconds, in a home of its own
///
/// Makes an agent, brings a conversation along, kills the daemon in the middle and shows that nothing is lost.
/// Nothing outside a temporary directory is touched, and that is gone afterwards.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs it.
///
/// # Errors
/// The step that failed.
pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    if app.stdout.format() != OutputFormat::Text {
        return Err(Error::usage("the tour is for people: it has no JSON").with_hint("leave --json and --format out"));
    }
    let mut stage = TempHome::new(app.global.color)?;
    let told = steps::run(&mut stage, &mut app.stdout);
    // The stage is cleared whatever happened; what went wrong in the story is the better error.
    let cleared = stage.close();
    told.and(cleared)
}
