//! `chorusctl daemon start`: starts the daemon unless one is running.

use chorus_proto::methods::daemon::{Hello, HelloParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;
use crate::{connect, version_difference};

/// Printed if another process started the daemon.
pub const ALREADY_RUNNING: &str = "already running";

/// Start the daemon
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    app.refuse_host("daemon start")?;
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

/// Prints `verb` and which daemon it is.
pub fn print_daemon(app: &mut App, verb: &str) -> Result<(), Error> {
    app.call_and_print::<Hello>(&HelloParams::default(), |app, hello| {
        let line = format!("{verb}: chorusd {}, pid {}", sanitize::one_line(&hello.version), hello.pid);
        app.stdout.status_line(&line)?;
        if verb == ALREADY_RUNNING {
            version_difference::warn(&hello.version, app);
        } else {
            version_difference::warn_of_program(&hello.version, app);
        }
        Ok(())
    })
}
