//! Socket activation: a listening socket that the service manager created and passes to us (`$LISTEN_FDS`), so that
//! clients may connect before we run.

use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use rustix::net::{AddressFamily, SocketType, sockopt};

use super::socket::BoundSocket;

/// The number of the first descriptor that is passed.
const FIRST_PASSED_FD: RawFd = 3;

/// A passed socket that has been checked.
#[derive(Debug)]
pub struct PassedSocket(UnixListener);

impl PassedSocket {
    /// Takes over the passed socket if there is one. May be called once per process.
    ///
    /// # Errors
    /// `invalid_params` if the descriptor is not exactly one listening Unix stream socket.
    pub fn take() -> Result<Option<Self>> {
        let number = |name: &str| {
            let text = std::env::var(name).ok()?;
            Some(text.parse::<u32>().map_err(|_| activation_error(format!("{name} is not a number: {text:?}"))))
        };
        // Otherwise the variables are meant for another process, and the program that started us left them in the
        // environment.
        if number("LISTEN_PID").transpose()? != Some(std::process::id()) {
            return Ok(None);
        }
        match number("LISTEN_FDS").transpose()? {
            None | Some(0) => return Ok(None),
            Some(1) => {}
            Some(more) => return Err(activation_error(format!("expected one socket, but {more} were passed"))),
        }
        let socket = take_fd(FIRST_PASSED_FD);
        ensure_listening(&socket).map_err(activation_error)?;
        Ok(Some(Self(UnixListener::from(socket))))
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        self.0.local_addr().ok()?.as_pathname().map(Path::to_path_buf)
    }

    /// Returns the socket as bound, and warns if it is not at `expected`, where clients look first. The file stays when
    /// the daemon ends, because it belongs to the service manager.
    #[must_use]
    pub fn into_bound(self, expected: &Path) -> BoundSocket {
        let path = self.path().unwrap_or_default();
        if path != expected {
            tracing::warn!("the passed socket is {}, but chorusctl tries {} first", path.display(), expected.display());
        }
        BoundSocket::from_activation(self.0, path)
    }
}

#[expect(unsafe_code, reason = "a passed descriptor is a number in the environment; nothing else can make it a socket")]
fn take_fd(fd: RawFd) -> OwnedFd {
    // SAFETY: LISTEN_PID names this process, so the descriptor was passed to it, and nobody else here takes it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn ensure_listening(socket: &OwnedFd) -> Result<(), &'static str> {
    let wrong = |_: rustix::io::Errno| "the passed descriptor is not a socket";
    // Child processes must not inherit it.
    rustix::io::fcntl_setfd(socket, rustix::io::FdFlags::CLOEXEC).map_err(wrong)?;
    if sockopt::socket_domain(socket).map_err(wrong)? != AddressFamily::UNIX {
        return Err("the passed socket is not a Unix socket");
    }
    if sockopt::socket_type(socket).map_err(wrong)? != SocketType::STREAM {
        return Err("the passed socket is not a stream socket");
    }
    if !sockopt::socket_acceptconn(socket).map_err(wrong)? {
        return Err("the passed socket is not listening");
    }
    Ok(())
}

fn activation_error(why: impl AsRef<str>) -> Error {
    Error::invalid(format!("socket activation failed: {}", why.as_ref()))
        .hint("set one ListenStream= with the path of a Unix socket in the socket unit; see docs/OPERATIONS.md")
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn only_a_listening_unix_stream_socket_will_do() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let listener = UnixListener::bind(dir.path().join("s"))?;
        assert_eq!(ensure_listening(&listener.into()), Ok(()));
        let (end, _other) = UnixStream::pair()?;
        assert!(ensure_listening(&end.into()).is_err_and(|why| why.contains("listen")));
        assert!(
            ensure_listening(&std::net::TcpListener::bind("127.0.0.1:0")?.into())
                .is_err_and(|why| why.contains("Unix"))
        );
        let datagram = std::os::unix::net::UnixDatagram::unbound()?;
        assert!(ensure_listening(&datagram.into()).is_err_and(|why| why.contains("stream")));
        assert!(
            ensure_listening(&std::fs::File::open(dir.path())?.into()).is_err_and(|why| why.contains("not a socket"))
        );
        Ok(())
    }
}
