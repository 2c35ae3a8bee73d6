//! Daemons that take connections and do not answer: one that was stopped by a signal, or hangs.

use std::io;
use std::time::Duration;

use chorus_proto::CallError;
use chorus_proto::lock_file;

use crate::app::App;
use crate::error::Error;

/// How long commands wait that only look at the daemon, unless `--timeout` is given. It answers them in milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Returns true if no answer came in time.
#[must_use]
pub(crate) fn is_cause_of(error: &CallError) -> bool {
    matches!(error, CallError::Io(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut))
}

/// Names the process that does not answer within `patience`, and a way out.
#[must_use]
pub(crate) fn error(app: &App, patience: Duration) -> Error {
    let pid = match app.paths() {
        Ok(places) if !app.is_remote() => lock_file::lock_holder(&places.home).and_then(|holder| holder.pid),
        _ => None,
    };
    let waited = humantime::format_duration(patience);
    match pid {
        Some(pid) => Error::failed(format!("chorusd, pid {pid}, has not answered for {waited}")).with_hint(format!(
            "if it was stopped (Ctrl-Z, SIGSTOP), continue it: kill -CONT {pid}; if it hangs: kill -9 {pid}; the next one has every acknowledged message"
        )),
        None => Error::failed(format!("the daemon has not answered for {waited}"))
            .with_hint("see if its process is stopped or busy; its log may say why: chorusctl daemon logs"),
    }
}
