//! Connects again if the line to another machine is lost.

use std::time::{Duration, Instant};

use chorus_proto::CallError;
use chorus_remote::{Prompts, RemoteError};

use crate::app::App;
use crate::error::Error;
use crate::host_select;

/// The waits before the line is tried again.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(5);

/// The pause before a line that has just broken is replaced.
const PAUSE: Duration = Duration::from_millis(500);

/// After a line has lasted this long, the limit on the time for attempts starts again.
const STABLE: Duration = Duration::from_secs(10);

/// How long a command that has an end tries to get its answer.
pub(crate) const RETRY_LIMIT: Duration = Duration::from_secs(60);

/// The methods that change nothing, or nothing more if they are repeated.
const REPEATABLE: [&str; 40] = [
    "agent.list",
    "agent.show",
    "approvals.list",
    "audit",
    "audit.verify",
    "capture.status",
    "cluster.status",
    "config.reload",
    "context.history",
    "context.show",
    "conversations.list",
    "conversations.use",
    "doctor.secrets",
    "doctor.size",
    "agent.use",
    "events.list",
    "hello",
    "memory.list",
    "memory.search",
    "models.list",
    "notes.list",
    "permissions.check",
    "permissions.list",
    "permissions.rules",
    "permissions.show",
    "schedule.list",
    "schedule.show",
    "search",
    "session.diff",
    "session.export.read",
    "session.export.select",
    "session.get",
    "session.tree",
    "settings.show",
    "status",
    "tasks.list",
    "tasks.logs",
    "tasks.show",
    "trash.list",
    "usage",
];

/// Returns true if a request may be sent again although it may have been carried out.
pub(crate) fn is_repeatable(method: &str) -> bool {
    REPEATABLE.contains(&method)
}

/// Returns true if the connection broke, so that another one may have the answer.
pub(crate) fn is_lost(error: &CallError) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    match error {
        CallError::Io(error) => matches!(error.kind(), UnexpectedEof | BrokenPipe | ConnectionReset),
        CallError::Rpc(_) | CallError::Malformed(_) => false,
    }
}

/// Attempts to get a lost line back.
#[derive(Debug)]
pub(crate) struct Reconnection {
    /// How long it is tried after a loss; `None` for as long as it takes.
    limit: Option<Duration>,
    wait: Duration,
    /// When the line was lost that is not stable again.
    lost_at: Option<Instant>,
    connected_at: Option<Instant>,
}

impl Reconnection {
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self { limit, wait: FIRST_RETRY, lost_at: None, connected_at: None }
    }

    /// Connects `app` again.
    ///
    /// # Errors
    /// The daemon is not on another machine, or it cannot be reached, for a reason that does not pass or in time.
    pub(crate) fn connect(&mut self, app: &mut App, lost: CallError) -> Result<(), Error> {
        let Some(host) = app.host()? else { return Err(lost.into()) };
        // It was not stopped to be started again.
        let host = host.without_autostart();
        app.disconnect();
        let age = self.connected_at.map(|connected| connected.elapsed());
        if age.is_some_and(|age| age > STABLE) {
            (self.wait, self.lost_at) = (FIRST_RETRY, None);
        } else if age.is_some() {
            // A line that breaks at once is not tried without a pause.
            std::thread::sleep(self.wait.min(PAUSE));
        }
        let lost_at = *self.lost_at.get_or_insert_with(Instant::now);
        let is_over = || self.limit.is_some_and(|limit| lost_at.elapsed() > limit);
        if is_over() {
            return Err(lost.into());
        }
        let mut is_reported = false;
        loop {
            match host_select::connect(&host, app, Prompts::Refuse) {
                Ok(client) => {
                    if is_reported && !app.global.quiet {
                        app.stderr.line(&format!("connected to {} again", host.name));
                    }
                    app.set_client(client);
                    self.connected_at = Some(Instant::now());
                    return Ok(());
                }
                Err(error) if !is_temporary(&error) || is_over() => return Err(error.into()),
                Err(_) => {}
            }
            if !std::mem::replace(&mut is_reported, true) && !app.global.quiet {
                app.stderr.line(&format!("lost the connection to {}; trying again", host.name));
            }
            std::thread::sleep(self.wait);
            self.wait = (self.wait * 2).min(LAST_RETRY);
        }
    }
}

/// Returns true if an attempt to connect may work later.
pub(crate) fn is_temporary(error: &CallError) -> bool {
    match error {
        CallError::Io(error) => RemoteError::find_in(error).is_none_or(|error| error.is_temporary),
        CallError::Rpc(_) | CallError::Malformed(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_repeatable;

    #[test]
    fn what_changes_something_is_not_repeated() {
        for method in ["context.append", "send", "context.save", "session.delete", "trash.empty", "session.import.add"]
        {
            assert!(!is_repeatable(method), "{method}");
        }
        assert!(is_repeatable("session.export.read") && is_repeatable("status"));
    }
}
