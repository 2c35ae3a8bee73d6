//! Connects to the daemon and starts one if none is running. This happens only before the first request: after a
//! request was sent, no daemon is started and nothing is sent again.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::error::exit;
use chorus_proto::lock_file::{self, LockHolder};
use chorus_proto::paths::InstancePaths;
use chorus_proto::peer_check::ForeignServer;

use crate::cli::GlobalOptions;
use crate::error::{Error, os_error_text};

mod spawn;

use spawn::{StartError, StartingDaemon};
pub use spawn::{
    check_config, check_config_text, daemon_program, program_error, read_config, run_repair, run_to_json, run_to_text,
    spawn_error, to_timespec,
};

/// The name under which processes are listed that this program becomes. The daemon's program sets the rest of it.
pub(crate) const OWN_NAME: &str = "chorusctl";

/// How long a daemon may take to start unless `--timeout` is given.
pub const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait for a daemon that holds the lock of the home and says that it listens.
const RIVAL_START_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a daemon is started again because the one that held the lock of the home has gone.
const MAX_STARTS: u32 = 5;
/// How many attempts to connect are made for each look at the lock, which a daemon that starts has to wait for.
const ATTEMPTS_PER_LOOK: u32 = 5;
/// Longest path of a Unix socket, in bytes.
const MAX_SOCKET_PATH_BYTES: usize = 107;

/// Connects to the daemon, or starts one unless `--no-autostart` is given.
pub fn connect(places: &InstancePaths, global: &GlobalOptions) -> Result<Client, Error> {
    match connect_if_running(places, global)? {
        Some(client) => Ok(client),
        None if global.no_autostart => Err(no_daemon_error(places)),
        None => Ok(start(places, global)?.client),
    }
}

/// Connects to a running daemon on whatever socket it listens; `None` if none is running.
///
/// # Errors
/// A daemon may be running but cannot be reached.
pub fn connect_if_running(places: &InstancePaths, global: &GlobalOptions) -> Result<Option<Client>, Error> {
    let client = match Client::connect_to(places) {
        Ok(client) => client,
        Err(error) => return ensure_not_listening(&places.socket, &error).map(|()| None),
    };
    if global.timeout.is_some() {
        client.set_timeout(global.timeout).map_err(|error| Error::failed(os_error_text(&error)))?;
    }
    Ok(Some(client))
}

/// Returns `Ok` if the error means that no daemon listens.
fn ensure_not_listening(socket: &Path, error: &io::Error) -> Result<(), Error> {
    let shown = socket.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(()),
        _ if socket.as_os_str().len() > MAX_SOCKET_PATH_BYTES => {
            Err(Error::usage(format!("the socket path is longer than {MAX_SOCKET_PATH_BYTES} bytes: {shown}"))
                .with_hint("set CHORUS_SOCKET to a shorter path"))
        }
        _ if ForeignServer::is_cause_of(error) => Err(untrusted_error(error)),
        io::ErrorKind::PermissionDenied => Err(Error::refused(format!("no permission to connect to {shown}"))
            .with_hint("only the daemon's user and root can connect")),
        _ => Err(Error::no_daemon(format!("failed to connect to {shown}: {}", os_error_text(error)))
            .with_hint("check the daemon: chorusctl daemon status")),
    }
}

/// The error if another user's program listens on the socket.
#[must_use]
pub fn untrusted_error(error: &io::Error) -> Error {
    let failure = Error::refused(error.to_string());
    match ForeignServer::find_in(error).and_then(ForeignServer::owner_for_root) {
        Some(owner) => failure.with_hint(format!(
            "nothing was sent; run chorusctl as that user (sudo -u '#{owner}' chorusctl …), or use your own socket with \
             --socket or CHORUS_SOCKET"
        )),
        None => failure.with_hint("nothing was sent; use your own socket with --socket or CHORUS_SOCKET"),
    }
}

/// The error if no daemon can be reached and none is to be started.
#[must_use]
pub fn no_daemon_error(places: &InstancePaths) -> Error {
    let socket = places.socket.display();
    match lock_file::lock_holder(&places.home) {
        None => {
            let failure = Error::no_daemon(format!("no daemon running ({socket})")).with_hint("chorusctl daemon start");
            // One that stops removes its socket from the lock file.
            match LockHolder::read(&places.home) {
                Ok(LockHolder { pid: Some(pid), socket: Some(_), .. }) => {
                    failure.with_detail(&format!("the last one (pid {pid}) was killed or crashed"))
                }
                _ => failure,
            }
        }
        Some(holder) => describe_holder(Error::no_daemon(format!("no daemon listens on {socket}")), places, &holder),
    }
}

/// Adds to the error which daemon holds the home's lock.
fn describe_holder(failure: Error, places: &InstancePaths, holder: &LockHolder) -> Error {
    let failure = failure.with_detail(&holder.describe(&places.home));
    match holder.socket.as_ref().filter(|socket| **socket != places.socket) {
        Some(socket) if places.socket_is_explicit => {
            failure.with_hint(format!("use that socket: --socket {}", socket.display()))
        }
        // This socket was tried already.
        Some(_) => failure.with_hint("chorusctl daemon restart"),
        None => failure.with_hint("it is starting or stopping; try again in a second"),
    }
}

/// A daemon that listens now.
#[derive(Debug)]
pub struct StartedDaemon {
    pub client: Client,
    /// False if another process started the daemon.
    pub is_ours: bool,
}

/// Starts a daemon and connects to it.
pub fn start(places: &InstancePaths, global: &GlobalOptions) -> Result<StartedDaemon, Error> {
    let deadline = Instant::now() + global.timeout.unwrap_or(START_TIMEOUT);
    let mut starts = 0;
    loop {
        starts += 1;
        let daemon = StartingDaemon::new(global.socket.as_deref())?;
        let failure = match daemon.wait_until_ready(deadline) {
            Ok(()) => match connect_if_running(places, global)? {
                Some(client) => return Ok(StartedDaemon { client, is_ours: true }),
                None => {
                    let what = format!("the daemon started, but does not listen on {}", places.socket.display());
                    return Err(Error::no_daemon(what).with_hint("chorusctl daemon logs"));
                }
            },
            Err(StartError::Exited { status, failure }) if status == exit::CONFLICT => failure,
            Err(StartError::Exited { failure, .. } | StartError::TimedOut(failure)) => return Err(failure),
        };
        match wait_for_rival(places, global, deadline)? {
            Rival::Listens(client) => return Ok(StartedDaemon { client, is_ours: false }),
            Rival::Gone if starts < MAX_STARTS => {}
            Rival::Gone | Rival::Unreachable => return Err(failure),
        }
    }
}

/// The daemon that held the lock of the home when another one was started.
enum Rival {
    Listens(Client),
    /// It was ending, for example after a `kill -9`, or failed to start.
    Gone,
    Unreachable,
}

/// Waits for the daemon that another process started at the same moment. One that holds the lock and names no socket is starting or
/// stopping, which may take as long as the start of a daemon of our own.
fn wait_for_rival(places: &InstancePaths, global: &GlobalOptions, deadline: Instant) -> Result<Rival, Error> {
    let listening_deadline = deadline.min(Instant::now() + RIVAL_START_TIMEOUT);
    for attempt in 1.. {
        if let Some(client) = connect_if_running(places, global)? {
            return Ok(Rival::Listens(client));
        }
        // Give up early if the path is not a socket, or the daemon of the home listens elsewhere.
        let hopeless = places.socket.symlink_metadata().is_ok_and(|there| !there.file_type().is_socket())
            || (places.socket_is_explicit && listens_elsewhere(places));
        if hopeless || Instant::now() >= deadline {
            return Ok(Rival::Unreachable);
        }
        if attempt % ATTEMPTS_PER_LOOK == 0 {
            match lock_file::lock_holder(&places.home) {
                None => return Ok(Rival::Gone),
                Some(holder) if holder.socket.is_some() && Instant::now() >= listening_deadline => break,
                Some(_) => {}
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(Rival::Unreachable)
}

/// Returns true if the daemon of the home listens on another socket than that of `places`.
fn listens_elsewhere(places: &InstancePaths) -> bool {
    lock_file::lock_holder(&places.home).and_then(|holder| holder.socket).is_some_and(|socket| socket != places.socket)
}
