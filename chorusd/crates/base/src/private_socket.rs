//! Sockets in the file system that only this user reaches.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind as bind_to, listen, socket_with};

/// The queue of connections that wait to be accepted: as long as the system allows.
const BACKLOG: i32 = -1;

/// Listens on a new socket at `path` with mode 0600. Nobody can connect before it has that mode.
///
/// # Errors
/// Something exists at `path`, or its directory cannot be written to. Nothing is left there then.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    #[cfg(target_vendor = "apple")]
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    bind_to(&socket, &SocketAddrUnix::new(path)?)?;
    let opened = fs::set_permissions(path, Permissions::from_mode(0o600))
        .and_then(|()| listen(&socket, BACKLOG).map_err(io::Error::from));
    if let Err(e) = opened {
        let _ = fs::remove_file(path);
        return Err(e);
    }
    Ok(socket.into())
}

#[cfg(not(target_vendor = "apple"))]
const FLAGS: SocketFlags = SocketFlags::CLOEXEC;
#[cfg(target_vendor = "apple")]
const FLAGS: SocketFlags = SocketFlags::empty();

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const ROUNDS: u32 = 2_000;

    #[test]
    fn one_that_can_be_reached_has_its_mode() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |round: u32| dir.path().join(round.to_string());
        let round = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let _end = EndOnDrop(&round);
            scope.spawn(|| {
                while let now @ 0..ROUNDS = round.load(Ordering::Relaxed) {
                    if UnixStream::connect(path(now)).is_ok()
                        && let Ok(found) = fs::metadata(path(now))
                    {
                        assert_eq!(found.permissions().mode() & 0o777, 0o600);
                    }
                }
            });
            for now in 0..ROUNDS {
                round.store(now, Ordering::Relaxed);
                let _listener = bind(&path(now)).expect("a socket");
                assert_eq!(bind(&path(now)).expect_err("taken").kind(), io::ErrorKind::AddrInUse);
                assert_eq!(fs::metadata(path(now)).expect("still there").permissions().mode() & 0o777, 0o600);
            }
        });
    }

    /// Ends the thread that connects, also if the other one panics.
    struct EndOnDrop<'a>(&'a AtomicU32);

    impl Drop for EndOnDrop<'_> {
        fn drop(&mut self) {
            self.0.store(ROUNDS, Ordering::Relaxed);
        }
    }
}
