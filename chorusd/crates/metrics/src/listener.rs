//! The port or the socket at which figures are read.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::Duration;

use chorus_base::private_socket;
use chorus_config::MetricsListen;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Time between two attempts to listen.
const RETRY: Duration = Duration::from_secs(5);

/// A connection of either kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A port or a socket that listens.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Accepts the next connection.
    pub(crate) async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Tcp(listener) => Box::new(listener.accept().await?.0),
            Self::Unix(listener) => Box::new(listener.accept().await?.0),
        })
    }

    /// Returns true for a port, which pages in a browser reach, too.
    pub(crate) fn is_port(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }
}

/// Listens. Conversations matter more than figures: if the place is taken, the daemon runs without, and this tries again.
/// Returns `None` at `stop`.
pub(crate) async fn bind_when_free(listen: &MetricsListen, stop: &CancellationToken) -> Option<Listener> {
    let mut is_reported = false;
    loop {
        let (place, bound) = match listen {
            MetricsListen::Address(address) => {
                (address.to_string(), TcpListener::bind(address).await.map(Listener::Tcp))
            }
            MetricsListen::Socket(path) => (path.display().to_string(), bind_socket(path).map(Listener::Unix)),
        };
        match bound {
            Ok(listener) => {
                tracing::info!(place, "metrics can be read");
                return Some(listener);
            }
            Err(error) if !is_reported => {
                tracing::error!(place, %error, "cannot listen for those who read metrics; trying again");
                is_reported = true;
            }
            Err(_) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return None,
            () = sleep(RETRY) => {}
        }
    }
}

/// Listens on a Unix socket that only this user reaches. One that nobody listens on any more is replaced, another file is not.
fn bind_socket(path: &Path) -> io::Result<UnixListener> {
    if let Ok(there) = fs::symlink_metadata(path) {
        if !there.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it exists and is not a socket"));
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another program listens on it"));
        }
        fs::remove_file(path)?;
    }
    let listener = private_socket::bind(path)?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}
