//! `chorusctl daemon stop`: stops the daemon and waits until it has ended.

use std::time::Duration;

use chorus_proto::methods::daemon::{Stop, StopParams, StopResult};
use chorus_proto::{CallError, Method as _};
use serde_json::value::{RawValue, to_raw_value};

use super::stop_unreachable::{self, StopOutcome};
use super::wait_exit;
use crate::app::{App, parse_result};
use crate::connect;
use crate::error::Error;
use crate::no_answer;
use crate::ui::stdout::OutputFormat;

/// How long the daemon may take to save everything unless `--timeout` is given.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Save every conversation and stop the daemon
///
/// Returns when the daemon has exited. A daemon on another socket is found by the lock file in its home; one that does not accept
/// connections is sent SIGTERM.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    app.refuse_host("daemon stop")?;
    let result = stop(app)?.ok_or_else(|| app.paths().map_or_else(|failure| failure, connect::no_daemon_error))?;
    match app.stdout.format() {
        OutputFormat::Text => {
            let StopResult { pid } = parse_result(&result)?;
            app.stdout.status_line(&format!("stopped: chorusd, pid {pid}"))?;
        }
        OutputFormat::Json | OutputFormat::Jsonl => app.stdout.json_line(&result)?,
    }
    app.stdout.flush()?;
    if let Err(error) = connect::check_config(app.global.socket.as_deref()) {
        app.stderr.warning(&format!("a daemon cannot start now: {}", error.message()));
        app.stderr.hint(error.hint().unwrap_or("fix the file: chorusctl config edit"));
    }
    Ok(())
}

/// Stops the daemon and waits until it has ended; `None` if none was running.
pub fn stop(app: &mut App) -> Result<Option<Box<RawValue>>, Error> {
    let patience = app.global.timeout.unwrap_or(STOP_TIMEOUT);
    let client = match connect::connect_if_running(app.paths()?, &app.global)? {
        Some(client) => client,
        None => match stop_unreachable::stop(app, patience)? {
            StopOutcome::NotRunning => return Ok(None),
            StopOutcome::Reachable(client) => client,
            StopOutcome::Exited(pid) => return Ok(Some(to_raw_value(&StopResult { pid }).map_err(CallError::from)?)),
        },
    };
    app.set_client(client);
    app.answer_limit = Some(no_answer::PATIENCE);
    let asked = app.within_answer_limit(|client| client.call_raw(Stop::NAME, &StopParams {}, &mut |_| ()));
    app.answer_limit = None;
    // One that continues later finds the request.
    let result =
        asked.map_err(|error| error.with_detail("it was asked to stop, which it does when it continues"))??;
    app.disconnect();
    let StopResult { pid } = parse_result(&result)?;
    if wait_exit::wait_for_exit(pid, &app.paths()?.socket, patience) {
        return Ok(Some(result));
    }
    Err(Error::failed(format!("the daemon (pid {pid}) is still stopping after {} s", patience.as_secs()))
        .with_hint("chorusctl daemon logs"))
}
