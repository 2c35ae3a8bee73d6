//! Calls the daemon, and starts it if none is running. Each request has a connection of its own, so that one that is
//! cancelled or takes long does not hold up another, and a daemon that was restarted is found.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_proto::client_async::AsyncClient;
use chorus_proto::error::exit;
use chorus_proto::methods::Method;
use chorus_proto::paths::InstancePaths;
use chorus_proto::{CallError, ErrorKind};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, sleep, timeout};

/// How long a daemon may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait for a daemon that another process is starting, and how often to look.
const RIVAL_TIMEOUT: Duration = Duration::from_secs(5);
const RIVAL_INTERVAL: Duration = Duration::from_millis(20);
/// The limit on requests at the same time; more of them wait.
const MAX_CALLS: usize = 16;

/// The daemon of one instance.
#[derive(Debug)]
pub(crate) struct Daemon {
    places: InstancePaths,
    socket: Option<PathBuf>,
    program: Option<PathBuf>,
    calls: Semaphore,
    /// Held while a daemon is started, so that one is started at a time.
    starting: Mutex<()>,
}

impl Daemon {
    pub(crate) fn new(places: InstancePaths, socket: Option<PathBuf>, program: Option<PathBuf>) -> Self {
        Self { places, socket, program, calls: Semaphore::new(MAX_CALLS), starting: Mutex::new(()) }
    }

    /// Calls `M` and returns its result. Nothing is sent twice: after a lost connection the caller decides.
    pub(crate) async fn call<M: Method>(&self, params: &M::Params) -> Result<M::Result> {
        let _permit = self.calls.acquire().await.map_err(|e| Error::internal(e.to_string()))?;
        let mut client = self.connect().await?;
        client.call::<M>(params).await.map_err(call_error)
    }

    async fn connect(&self) -> Result<AsyncClient> {
        if let Some(client) = self.connect_if_running().await? {
            return Ok(client);
        }
        let Some(program) = &self.program else { return Err(self.no_daemon_error()) };
        let _starting = self.starting.lock().await;
        // Another request may have started it meanwhile.
        if let Some(client) = self.connect_if_running().await? {
            return Ok(client);
        }
        let mut command = Command::new(program);
        command.arg("--detach").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(socket) = &self.socket {
            command.arg("--socket").arg(socket);
        }
        let child = command.spawn().map_err(|e| {
            Error::new(ErrorKind::Unknown, format!("cannot start {}: {e}", program.display()))
                .hint("start it by hand: chorusctl daemon start")
        })?;
        let started = timeout(START_TIMEOUT, wait_until_ready(child)).await;
        let conflict = started.unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::Unknown, "the daemon was not ready in time").hint("chorusctl daemon logs"))
        })?;
        self.wait_to_connect(conflict).await
    }

    async fn connect_if_running(&self) -> Result<Option<AsyncClient>> {
        use std::io::ErrorKind::{ConnectionRefused, NotFound};
        match AsyncClient::connect_to(&self.places).await {
            Ok(client) => Ok(Some(client)),
            Err(e) if matches!(e.kind(), NotFound | ConnectionRefused) => Ok(None),
            Err(e) => {
                let shown = self.places.socket.display();
                Err(Error::new(ErrorKind::Unknown, format!("cannot connect to {shown}: {e}"))
                    .hint("check the daemon: chorusctl daemon status"))
            }
        }
    }

    /// Connects to the daemon that was started. If another process was faster (`conflict`), waits for that one.
    async fn wait_to_connect(&self, conflict: Option<Error>) -> Result<AsyncClient> {
        let deadline = Instant::now() + if conflict.is_some() { RIVAL_TIMEOUT } else { Duration::ZERO };
        loop {
            if let Some(client) = self.connect_if_running().await? {
                return Ok(client);
            }
            if Instant::now() >= deadline {
                return Err(conflict.unwrap_or_else(|| self.no_daemon_error()));
            }
            sleep(RIVAL_INTERVAL).await;
        }
    }

    fn no_daemon_error(&self) -> Error {
        Error::new(ErrorKind::Unknown, format!("no daemon running ({})", self.places.socket.display()))
            .hint("start it, then try again: chorusctl daemon start")
    }
}

/// Waits until the daemon prints `ready`. Returns its error if it ended because another daemon uses the home.
///
/// # Errors
/// Its own error if it ended otherwise.
async fn wait_until_ready(mut child: Child) -> Result<Option<Error>> {
    if let Some(stdout) = child.stdout.take() {
        let mut lines = BufReader::new(stdout).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if line == "ready" {
                return Ok(None);
            }
        }
    }
    let mut complaint = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        // What can be read of it is enough.
        let _ = stderr.read_to_string(&mut complaint).await;
    }
    let status = child.wait().await.map_err(|e| Error::internal(e.to_string()))?;
    let error = parse_error(&complaint);
    if status.code() == Some(i32::from(exit::CONFLICT)) { Ok(Some(error)) } else { Err(error) }
}

/// Parses the daemon's `error:` and `hint:` lines.
fn parse_error(complaint: &str) -> Error {
    let complaint = complaint.trim();
    let (what, hint) = complaint.split_once("\nhint: ").unwrap_or((complaint, "chorusctl daemon logs"));
    let what = what.strip_prefix("error: ").unwrap_or(what);
    let what = if what.is_empty() { "the daemon ended before it was ready" } else { what };
    Error::new(ErrorKind::Unknown, what).hint(hint)
}

fn call_error(error: CallError) -> Error {
    match error {
        CallError::Rpc(error) => {
            let failure = Error::new(error.kind(), error.message);
            match error.data.and_then(|data| data.hint) {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
        CallError::Io(error) => Error::new(ErrorKind::Unknown, format!("lost the connection to the daemon: {error}"))
            .hint("it is not known whether the request was carried out; check, then try again"),
        CallError::Malformed(error) => {
            Error::new(ErrorKind::Unknown, format!("invalid reply from the daemon: {error}"))
                .hint("chorusd may be of another release: chorusctl daemon restart")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_daemon_are_relayed() {
        let error = parse_error("error: the home is open to others\nhint: chmod 700 it\n");
        assert_eq!((&*error.message, error.hint.as_deref()), ("the home is open to others", Some("chmod 700 it")));
        let error = parse_error("");
        assert_eq!(error.message, "the daemon ended before it was ready");
        assert!(error.hint.is_some());
    }
}
