//! `chorusctl tour`: the whole story, told by really running it.

use crate::app::App;
use crate::error::Failure;
use crate::ui::out::Format;

mod stage;
mod story;
mod sweeper;

use stage::Stage;

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
pub fn run(_: Args, app: &mut App) -> Result<(), Failure> {
    if app.out.format() != Format::Text {
        return Err(Failure::usage("the tour is for people: it has no JSON").hint("leave --json and --format out"));
    }
    let mut stage = Stage::new(app.global.color)?;
    let told = story::tell(&mut stage, &mut app.out);
    // The stage is cleared whatever happened; what went wrong in the story is the better error.
    let cleared = stage.clear();
    told.and(cleared)
}
