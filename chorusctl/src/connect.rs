//! Reaching the daemon, and starting one where none runs. It happens before the first request; once a request
//! was sent nothing is started and nothing is sent again.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::error::exit;
use chorus_proto::instance::{self, Holder};
use chorus_proto::paths::Places;
use chorus_proto::server::ForeignServer;

use crate::cli::Global;
use crate::error::{Failure, plain};

mod spawn;

use spawn::{NotReady, Spawned};
pub use spawn::{ended, missing, program, repair, timespec};

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
    match reach(places, global)? {
        Some(client) => Ok(client),
        None if global.no_autostart => Err(nobody(places)),
        None => Ok(start(places, global)?.client),
    }
}

/// Connects to a daemon that runs, wherever it listens; `None` where none does.
///
/// # Errors
/// [`Failure`] where one may run but cannot be reached.
pub fn reach(places: &Places, global: &Global) -> Result<Option<Client>, Failure> {
    let client = match Client::connect_to(places) {
        Ok(client) => client,
        Err(error) => return absent(&places.socket, &error).map(|()| None),
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
        _ if ForeignServer::is_in(error) => Err(untrusted(error)),
        io::ErrorKind::PermissionDenied => Err(Failure::refused(format!("no permission to connect to {shown}"))
            .hint("only the daemon's own user and root may")),
        _ => Err(Failure::no_daemon(format!("failed to connect to {shown}: {}", plain(error)))
            .hint("chorusctl daemon status; --socket and CHORUS_SOCKET name another socket")),
    }
}

/// The failure where another user's program listens.
#[must_use]
pub fn untrusted(error: &io::Error) -> Failure {
    let failure = Failure::refused(error.to_string());
    match ForeignServer::of(error).and_then(ForeignServer::owner_for_root) {
        Some(owner) => failure.hint(format!(
            "nothing was sent; run chorusctl as that user: sudo -u '#{owner}' chorusctl …, or choose a socket of your own \
             with --socket or CHORUS_SOCKET"
        )),
        None => failure.hint("nothing was sent; choose a socket of your own with --socket or CHORUS_SOCKET"),
    }
}

/// The failure where no daemon can be reached and none is to be started.
#[must_use]
pub fn nobody(places: &Places) -> Failure {
    let failure = Failure::no_daemon(format!("no daemon listens at {}", places.socket.display()));
    match instance::holder(&places.home) {
        None => failure.hint("chorusctl daemon start"),
        Some(holder) => elsewhere(failure, places, &holder),
    }
}

/// Says of a failure to reach a daemon who serves the home instead.
fn elsewhere(failure: Failure, places: &Places, holder: &Holder) -> Failure {
    let failure = failure.and(&holder.describe(&places.home));
    match holder.socket.as_ref().filter(|socket| **socket != places.socket) {
        Some(socket) if places.socket_is_named => failure.hint(format!("use that one: --socket {}", socket.display())),
        // It was tried.
        Some(_) => failure.hint("chorusctl daemon restart"),
        None => failure.hint("it is starting, stopping or about to listen again: try again in a second"),
    }
}

/// A daemon that listens now, and who started it.
#[derive(Debug)]
pub struct Started {
    pub client: Client,
    /// False: another daemon ran already, or was started at the same moment.
    pub is_ours: bool,
}

/// Starts a daemon and connects to it.
///
/// # Errors
/// [`Failure`] where it does not get ready.
pub fn start(places: &Places, global: &Global) -> Result<Started, Failure> {
    let deadline = Instant::now() + global.timeout.unwrap_or(READY);
    let daemon = Spawned::new(global.socket.as_deref())?;
    match daemon.wait_until_ready(deadline) {
        Ok(()) => match reach(places, global)? {
            Some(client) => Ok(Started { client, is_ours: true }),
            None => {
                let what = format!("the daemon started, but nobody listens at {}", places.socket.display());
                Err(Failure::no_daemon(what).hint("chorusctl daemon logs"))
            }
        },
        Err(NotReady::Exited { status, failure }) if status == exit::CONFLICT => {
            let client = rival(places, global, deadline)?.ok_or(failure)?;
            Ok(Started { client, is_ours: false })
        }
        Err(NotReady::Exited { failure, .. } | NotReady::Late(failure)) => Err(failure),
    }
}

/// The daemon that somebody else started at the same moment, once it listens.
fn rival(places: &Places, global: &Global, deadline: Instant) -> Result<Option<Client>, Failure> {
    let deadline = deadline.min(Instant::now() + RIVAL);
    loop {
        if let Some(client) = reach(places, global)? {
            return Ok(Some(client));
        }
        // Something that is no socket will never answer, and a daemon that listens elsewhere will not listen here.
        let hopeless = places.socket.symlink_metadata().is_ok_and(|there| !there.file_type().is_socket())
            || (places.socket_is_named && listens_elsewhere(places));
        if hopeless || Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Tells if the daemon of the home listens at another socket than that of `places`.
fn listens_elsewhere(places: &Places) -> bool {
    instance::holder(&places.home).and_then(|holder| holder.socket).is_some_and(|socket| socket != places.socket)
}
