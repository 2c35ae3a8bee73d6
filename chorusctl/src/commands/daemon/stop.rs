//! `chorusctl daemon stop`.

use std::time::Duration;

use chorus_proto::CallError;
use chorus_proto::methods::daemon::{Stop, StopParams, StopResult};
use serde_json::value::{RawValue, to_raw_value};

use super::by_lock::{self, Unreached};
use super::gone;
use crate::app::{App, read};
use crate::connect;
use crate::error::Failure;
use crate::ui::out::Format;

/// How long a daemon may take to save everything unless `--timeout` says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// Save every conversation and stop the daemon
///
/// Returns when the daemon has ended. A daemon that listens elsewhere is found by the lock file in its home; one that nothing can connect to is sent SIGTERM.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Stops it.
///
/// # Errors
/// Why it still runs, or that none does.
pub fn run(_: Args, app: &mut App) -> Result<(), Failure> {
    let result = stop(app)?.ok_or_else(|| app.places().map_or_else(|failure| failure, connect::nobody))?;
    match app.out.format() {
        Format::Text => {
            let StopResult { pid } = read(&result)?;
            app.out.done(&format!("stopped: chorusd, pid {pid}"))
        }
        Format::Json | Format::Jsonl => app.out.json_line(&result),
    }
}

/// Stops the daemon and waits until it has ended; `None` where none ran.
///
/// # Errors
/// Why it still runs.
pub fn stop(app: &mut App) -> Result<Option<Box<RawValue>>, Failure> {
    let patience = app.global.timeout.unwrap_or(PATIENCE);
    let client = match connect::reach(app.places()?, &app.global)? {
        Some(client) => client,
        None => match by_lock::stop(app, patience)? {
            Unreached::Nobody => return Ok(None),
            Unreached::Reached(client) => client,
            Unreached::Ended(pid) => return Ok(Some(to_raw_value(&StopResult { pid }).map_err(CallError::from)?)),
        },
    };
    app.connected(client);
    let result = app.call_raw::<Stop>(&StopParams {})?;
    app.disconnect();
    let StopResult { pid } = read(&result)?;
    if gone::wait(pid, &app.places()?.socket, patience) {
        return Ok(Some(result));
    }
    Err(Failure::failed(format!("the daemon (pid {pid}) is still stopping after {} s", patience.as_secs()))
        .hint("chorusctl daemon logs"))
}
