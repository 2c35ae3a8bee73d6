//! `chorusctl tour`: demonstrates Chorus by running real commands in a temporary home.

use crate::app::App;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;

mod cleanup;
mod steps;
mod temp_home;

use temp_home::TempHome;

/// Run a ten-second demo in a temporary directory
///
/// Creates an agent, imports a conversation, kills the daemon midway and shows that nothing is lost. The temporary directory is deleted
/// afterwards; nothing else is touched.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    app.use_this_machine("tour")?;
    if app.stdout.format() != OutputFormat::Text {
        return Err(Error::usage("the tour has no JSON output").with_hint("run it without --json and --format"));
    }
    let mut stage = TempHome::new(app.global.color)?;
    let told = steps::run(&mut stage, &mut app.stdout);
    // Always remove the temporary home; an error of a step takes precedence over one of the removal.
    let cleared = stage.close();
    told.and(cleared)
}
