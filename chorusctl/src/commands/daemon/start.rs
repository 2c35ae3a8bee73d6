//! `chorusctl daemon start`.

use chorus_proto::methods::daemon::{Hello, HelloParams};

use crate::app::App;
use crate::connect;
use crate::error::Error;
use crate::ui::sanitize;

/// The word for a daemon that somebody else started.
pub const ALREADY_RUNNING: &str = "already running";

/// Start the daemon
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Starts it, where none runs yet.
///
/// # Errors
/// Why it does not run.
pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    let places = app.paths()?;
    let (client, verb) = match connect::connect_if_running(places, &app.global)? {
        Some(client) => (client, ALREADY_RUNNING),
        None => {
            let started = connect::start(places, &app.global)?;
            (started.client, if started.is_ours { "started" } else { ALREADY_RUNNING })
        }
    };
    app.set_client(client);
    print_daemon(app, verb)
}

/// Says which daemon it is, after `verb`.
///
/// # Errors
/// Why the daemon does not say.
pub fn print_daemon(app: &mut App, verb: &str) -> Result<(), Error> {
    app.call_and_print::<Hello>(&HelloParams::default(), |app, hello| {
        let line = format!("{verb}: chorusd {}, pid {}", sanitize::one_line(&hello.version), hello.pid);
        app.stdout.status_line(&line)
    })
}
