//! `chorusctl capture pause`: captures nothing for a while.

use chorus_proto::methods::capture::{Pause, PauseParams};

use crate::app::App;
use crate::error::Error;

/// Capture nothing for a while
///
/// After `chorusctl capture resume`, what was written during the pause is captured, if the program still has it.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Pause>(&PauseParams {}, |app, _| {
        app.stdout.status_line("capture is paused; continue: chorusctl capture resume")
    })
}
