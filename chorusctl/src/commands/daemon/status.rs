//! `chorusctl daemon status`: tells whether the daemon runs, without starting one.

use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_proto::methods::settings::{Show, ShowParams, ShowResult};
use chorus_proto::{CallError, ErrorKind};

use crate::app::App;
use crate::commands::status;
use crate::connect;
use crate::error::Error;
use crate::no_answer;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;

/// Check whether the daemon is running
///
/// Does not start one. The exit status is 0 if it is running and 4 if not.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Connects, but starts no daemon.
fn connect_if_running(app: &mut App) -> Result<(), Error> {
    if app.is_remote() {
        app.forbid_autostart();
        return app.client().map(drop);
    }
    let places = app.paths()?;
    let client = connect::connect_if_running(places, &app.global)?.ok_or_else(|| connect::no_daemon_error(places))?;
    app.set_client(client);
    Ok(())
}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    app.answer_limit = Some(no_answer::PATIENCE);
    connect_if_running(app)?;
    // The text line needs no agents; JSON output contains them all.
    if app.stdout.format() != OutputFormat::Text {
        return app.call_and_print::<Status>(&StatusParams::default(), |_, _| Ok(()));
    }
    let result = match status::try_fetch_status(app, 0)? {
        // It runs, which is what was asked.
        Err(CallError::Rpc(error)) if error.kind() == ErrorKind::StorageUnavailable => {
            return writeln!(app.stdout, "chorusd is running, but: {}", sanitize::one_line(&error.message));
        }
        answer => answer?,
    };
    let line = status::daemon_line(&app.stdout, &result.daemon);
    writeln!(app.stdout, "{line}")?;
    app.stdout.flush()?;
    // Daemons of earlier releases do not know whether it can be used.
    if let Ok(ShowResult { problem: Some(problem), .. }) = app.call::<Show>(&ShowParams {}) {
        app.stderr.warning(&format!(
            "{}; the daemon continues with the values that it read before",
            sanitize::one_line(&problem)
        ));
        app.stderr.hint("fix the file before a restart: chorusctl config edit");
    }
    Ok(())
}
