//! Reaching the daemon, and starting one where none runs. It happens before the first request; once a request
//! was sent nothing is started and nothing is sent again.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::error::exit;
use chorus_proto::paths::Places;

use crate::cli::Global;
use crate::error::{Failure, plain};

mod spawn;

use spawn::{NotReady, Spawned};
pub use spawn::{program, repair, timespec};

/// How long a daemon may take to get ready unless `--timeout` says otherwise.
pub const READY: Duration = Duration::from_secs(30);
/// How long to wait for a daemon that somebody else is starting.
const RIVAL: Duration = Duration::from_secs(5);
/// Longest path of a socket that the system takes.
const LONGEST_SOCKET: usize = 107;

/// Connects to the daemon, or starts one.
///
/// # Errors
/// [`Failure`] where none can be reached.
pub fn connect(places: &Places, global: &Global) -> Result<Client, Failure> {
    match reach(&places.socket, global)? {
        Some(client) => Ok(client),
        None if global.no_autostart => Err(nobody(&places.socket)),
        None => start(places, global),
    }
}

/// Connects to a daemon that runs; `None` where none does.
///
/// # Errors
/// [`Failure`] where one may run but cannot be reached.
pub fn reach(socket: &Path, global: &Global) -> Result<Option<Client>, Failure> {
    let client = match Client::connect(socket) {
        Ok(client) => client,
        Err(error) => return absent(socket, &error).map(|()| None),
    };
    if global.timeout.is_some() {
        client.set_timeout(global.timeout).map_err(|error| Failure::failed(plain(&error)))?;
    }
    Ok(Some(client))
}

/// `Ok` where the error says that nobody listens.
fn absent(socket: &Path, error: &io::Error) -> Result<(), Failure> {
    let shown = socket.display();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(()),
        _ if socket.as_os_str().len() > LONGEST_SOCKET => {
            Err(Failure::usage(format!("the socket's path is longer than {LONGEST_SOCKET} bytes: {shown}"))
                .hint("set CHORUS_SOCKET to a shorter one"))
        }
        io::ErrorKind::PermissionDenied => Err(Failure::refused(format!("no permission to connect to {shown}"))
            .hint("only the daemon's own user and root may")),
        _ => Err(Failure::no_daemon(format!("failed to connect to {shown}: {}", plain(error)))),
    }
}

/// The failure where no daemon runs and none is to be started.
#[must_use]
pub fn nobody(socket: &Path) -> Failure {
    Failure::no_daemon(format!("no daemon listens at {}", socket.display())).hint("chorusctl daemon start")
}

/// Starts a daemon and connects to it.
///
/// # Errors
/// [`Failure`] where it does not get ready.
pub fn start(places: &Places, global: &Global) -> Result<Client, Failure> {
    let deadline = Instant::now() + global.timeout.unwrap_or(READY);
    let daemon = Spawned::new(global.socket.as_deref())?;
    match daemon.wait_until_ready(deadline) {
        Ok(()) => reach(&places.socket, global)?.ok_or_else(|| {
            Failure::no_daemon(format!("the daemon started, but nobody listens at {}", places.socket.display()))
        }),
        Err(NotReady::Exited { status, failure }) if status == exit::CONFLICT => {
            rival(&places.socket, global, deadline)?.ok_or(failure)
        }
        Err(NotReady::Exited { failure, .. } | NotReady::Late(failure)) => Err(failure),
    }
}

/// The daemon that somebody else started at the same moment, once it listens.
fn rival(socket: &Path, global: &Global, deadline: Instant) -> Result<Option<Client>, Failure> {
    let deadline = deadline.min(Instant::now() + RIVAL);
    loop {
        if let Some(client) = reach(socket, global)? {
            return Ok(Some(client));
        }
        // Something that is no socket will never answer.
        let hopeless = socket.symlink_metadata().is_ok_and(|there| !there.file_type().is_socket());
        if hopeless || Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
