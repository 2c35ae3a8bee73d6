//! Daemons that take connections and do not answer: one that was stopped by a signal, or hangs.

use std::io;
use std::time::Duration;

use chorus_proto::CallError;
use chorus_proto::lock_file;
use chorus_proto::methods::daemon::{Hello, HelloParams};

use crate::app::App;
use crate::connect;
use crate::error::Error;

/// How long commands wait that only look at the daemon, unless `--timeout` is given. It answers
/// them in milliseconds, unless it waits for a database.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Returns true if no answer came in time.
#[must_use]
pub(crate) fn is_cause_of(error: &CallError) -> bool {
    matches!(error, CallError::Io(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut))
}

/// How long a daemon may take to greet another connection, which needs neither a disk nor a database.
const GREETING_TIMEOUT: Duration = Duration::from_secs(2);

/// Names the process that does not answer within `patience`, and a way out; or says that it is only busy.
#[must_use]
pub(crate) fn error(app: &App, patience: Duration) -> Error {
    let waited = humantime::format_duration(patience);
    if app.is_remote() || greets(app) {
        return Error::failed(format!("the daemon has not answered for {waited}")).with_hint(
            "it may wait for a disk or a database: chorusctl daemon logs; or wait longer, e.g. with --timeout 1m",
        );
    }
    let pid = app.paths().ok().and_then(|places| lock_file::lock_holder(&places.home)?.pid);
    match pid {
        Some(pid) => Error::failed(format!("chorusd, pid {pid}, has not answered for {waited}")).with_hint(format!(
            "if it was stopped (Ctrl-Z, SIGSTOP), continue it: kill -CONT {pid}; if it hangs: kill -9 {pid}; the next one has every acknowledged message"
        )),
        None => Error::failed(format!("the daemon has not answered for {waited}"))
            .with_hint("see if its process is stopped or busy; its log may say why: chorusctl daemon logs"),
    }
}

/// Returns true if the daemon answers another connection.
fn greets(app: &App) -> bool {
    let Ok(Ok(Some(mut client))) = app.paths().map(|places| connect::connect_if_running(places, &app.global)) else {
        return false;
    };
    client.set_timeout(Some(GREETING_TIMEOUT)).is_ok() && client.call::<Hello>(&HelloParams::default()).is_ok()
}
