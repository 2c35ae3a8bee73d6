//! `chorusctl daemon stop`.

use std::time::Duration;

use chorus_proto::methods::daemon::{Stop, StopParams, StopResult};
use serde_json::value::RawValue;

use super::gone;
use crate::app::{App, read};
use crate::connect;
use crate::error::Failure;
use crate::ui::out::Format;

/// How long a daemon may take to save everything unless `--timeout` says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// Save every conversation and stop the daemon
///
/// Returns when the daemon has ended.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Stops it.
///
/// # Errors
/// Why it still runs, or that none does.
pub fn run(_: Args, app: &mut App) -> Result<(), Failure> {
    let result = stop(app)?
        .ok_or_else(|| app.places().map_or_else(|failure| failure, |places| connect::nobody(&places.socket)))?;
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
    let Some(client) = connect::reach(&app.places()?.socket, &app.global)? else { return Ok(None) };
    app.connected(client);
    let result = app.call_raw::<Stop>(&StopParams {})?;
    app.disconnect();
    let StopResult { pid } = read(&result)?;
    let patience = app.global.timeout.unwrap_or(PATIENCE);
    if gone::wait(pid, &app.places()?.socket, patience) {
        return Ok(Some(result));
    }
    Err(Failure::failed(format!("the daemon (pid {pid}) is still stopping after {} s", patience.as_secs()))
        .hint("chorusctl daemon logs"))
}
