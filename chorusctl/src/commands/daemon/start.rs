//! `chorusctl daemon start`.

use chorus_proto::methods::daemon::{Hello, HelloParams};

use crate::app::App;
use crate::connect;
use crate::error::Failure;
use crate::ui::safe;

/// The word for a daemon that somebody else started.
pub const RUNNING: &str = "already running";

/// Start the daemon
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Starts it, where none runs yet.
///
/// # Errors
/// Why it does not run.
pub fn run(_: Args, app: &mut App) -> Result<(), Failure> {
    let places = app.places()?;
    let (client, verb) = match connect::reach(places, &app.global)? {
        Some(client) => (client, RUNNING),
        None => {
            let started = connect::start(places, &app.global)?;
            (started.client, if started.is_ours { "started" } else { RUNNING })
        }
    };
    app.connected(client);
    tell(app, verb)
}

/// Says which daemon it is, after `verb`.
///
/// # Errors
/// Why the daemon does not say.
pub fn tell(app: &mut App, verb: &str) -> Result<(), Failure> {
    app.answer::<Hello>(&HelloParams::default(), |app, hello| {
        let line = format!("{verb}: chorusd {}, pid {}", safe::one_line(&hello.version), hello.pid);
        app.out.done(&line)
    })
}
