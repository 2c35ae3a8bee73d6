//! The lock of a home and its lock file. One daemon serves a home; the file says which one and on which socket. The
//! daemon writes it, and a client reads it if nobody listens on the socket that it tries first.
//!
//! The daemon holds an exclusive `flock` on the home directory itself and on the lock file. Lines of the file: the pid;
//! while the daemon listens, the path of its socket; the path that it was asked to listen on, if that is another one.
//! More lines may follow in later releases.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::paths::InstancePaths;

/// Path of the lock file relative to the home.
pub const LOCK_FILE: &str = "run/chorusd.lock";

/// No lock file is longer, in bytes.
const MAX_LOCK_FILE_BYTES: u64 = 16 * 1024;

/// The content of a lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockHolder {
    pub pid: Option<u32>,
    /// The socket on which it listens.
    pub socket: Option<PathBuf>,
    /// The socket on which it was asked to listen, if that is another one.
    pub requested_socket: Option<PathBuf>,
}

impl LockHolder {
    /// Reads the lock file of `home`. It must be a regular file that belongs to this user or root.
    pub fn read(home: &Path) -> io::Result<Self> {
        let path = home.join(LOCK_FILE);
        // Check the type before opening: opening a pipe would block forever.
        check_file(&path.metadata()?)?;
        let file = File::open(path)?;
        check_file(&file.metadata()?)?;
        let mut text = Vec::new();
        file.take(MAX_LOCK_FILE_BYTES).read_to_end(&mut text)?;
        Ok(Self::parse(&text))
    }

    /// Parses the text of a lock file. Ignores a last line without newline, which is still being written.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut lines = text[..whole].split(|byte| *byte == b'\n');
        let pid = lines.next().and_then(|line| std::str::from_utf8(line).ok()?.trim().parse().ok());
        let mut path = || lines.next().filter(|line| !line.is_empty()).map(path_of).filter(|path| path.is_absolute());
        let socket = path();
        let requested_socket = path();
        Self { pid, socket, requested_socket }
    }

    /// Formats the text of a lock file. Leaves out paths that contain a newline.
    #[must_use]
    pub fn to_text(&self) -> Vec<u8> {
        let mut text = self.pid.map(|pid| pid.to_string()).unwrap_or_default().into_bytes();
        text.push(b'\n');
        for path in [&self.socket, &self.requested_socket] {
            let path = path.as_deref().map(Path::as_os_str).unwrap_or_default().as_encoded_bytes();
            if path.is_empty() || path.contains(&b'\n') {
                break;
            }
            text.extend_from_slice(path);
            text.push(b'\n');
        }
        text
    }

    /// Describes who uses `home`, for people: `another daemon (pid 7) uses /home/ada/.chorus-agents on socket
    /// /run/user/7/s`.
    #[must_use]
    pub fn describe(&self, home: &Path) -> String {
        let pid = self.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        let socket = self.socket.as_ref().map(|socket| format!(" on socket {}", socket.display())).unwrap_or_default();
        format!("another daemon{pid} uses {}{socket}", home.display())
    }

    /// Returns the socket that clients of `places` should use instead of theirs: that of the holder, unless another one
    /// was named explicitly.
    fn socket_for_clients(self, places: &InstancePaths) -> Option<PathBuf> {
        let is_meant = !places.socket_is_explicit || self.requested_socket.as_ref() == Some(&places.socket);
        self.socket.filter(|socket| is_meant && *socket != places.socket)
    }
}

/// Returns the daemon that holds the lock of `home`, as far as its lock file tells. `None` if no daemon holds it, or
/// only one of a release that did not lock the home.
#[must_use]
pub fn lock_holder(home: &Path) -> Option<LockHolder> {
    match is_locked(home) {
        Ok(false) => None,
        Ok(true) => Some(LockHolder::read(home).unwrap_or_default()),
        // Without locks on directories (some file systems have none), rely on the file alone.
        Err(_) => LockHolder::read(home).ok(),
    }
}

/// Returns the socket of the daemon that serves the home of `places`, if it is not the socket of `places`.
#[must_use]
pub fn socket_elsewhere(places: &InstancePaths) -> Option<PathBuf> {
    lock_holder(&places.home)?.socket_for_clients(places)
}

/// Returns true if a daemon holds the lock on the directory `home`. The check takes a shared lock for a moment; a
/// daemon that starts at that moment waits for it.
fn is_locked(home: &Path) -> io::Result<bool> {
    let directory = File::open(home)?;
    match directory.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(unix)]
fn check_file(found: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let ours = [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
    if found.is_file() && ours { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

#[cfg(not(unix))]
fn check_file(found: &fs::Metadata) -> io::Result<()> {
    if found.is_file() { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

#[cfg(unix)]
fn path_of(line: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    std::ffi::OsStr::from_bytes(line).into()
}

#[cfg(not(unix))]
fn path_of(line: &[u8]) -> PathBuf {
    String::from_utf8_lossy(line).into_owned().into()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn holder_of(pid: u32, paths: &[&str]) -> LockHolder {
        let mut paths = paths.iter().map(PathBuf::from);
        LockHolder { pid: Some(pid), socket: paths.next(), requested_socket: paths.next() }
    }

    #[test]
    fn what_is_written_is_read() {
        for (holder, text) in [
            (holder_of(7, &[]), "7\n"),
            (holder_of(7, &["/run/s"]), "7\n/run/s\n"),
            (holder_of(7, &["/h/run/s", "/gone/s"]), "7\n/h/run/s\n/gone/s\n"),
        ] {
            assert_eq!(String::from_utf8_lossy(&holder.to_text()), text);
            assert_eq!(LockHolder::parse(text.as_bytes()), holder);
        }
        assert_eq!(holder_of(7, &["/a\nb"]).to_text(), b"7\n");
    }

    #[test]
    fn other_texts_are_read_as_far_as_they_go() {
        assert_eq!(LockHolder::parse(b""), LockHolder::default());
        assert_eq!(LockHolder::parse(b"12"), LockHolder::default(), "the end may be missing");
        assert_eq!(LockHolder::parse(b"12\n/run/s\n/run/t\nmore\n"), holder_of(12, &["/run/s", "/run/t"]));
        assert_eq!(LockHolder::parse(b"12\n/run/s"), holder_of(12, &[]));
        assert_eq!(LockHolder::parse(b"12\nrun/s\n"), holder_of(12, &[]), "relative to what?");
        assert_eq!(LockHolder::parse(b"no\n/run/s\n").pid, None);
    }

    #[test]
    fn a_socket_that_was_named_is_left_only_for_the_daemon_that_was_to_listen_there() {
        let places = |socket: &str, socket_is_named| InstancePaths {
            home: "/h".into(),
            socket: socket.into(),
            config: "/c".into(),
            socket_is_explicit: socket_is_named,
        };
        let moved = || holder_of(7, &["/h/run/s", "/gone/s"]);
        let led = Some(PathBuf::from("/h/run/s"));
        assert_eq!(moved().socket_for_clients(&places("/run/user/7/s", false)), led);
        assert_eq!(moved().socket_for_clients(&places("/gone/s", true)), led);
        assert_eq!(moved().socket_for_clients(&places("/elsewhere/s", true)), None);
        assert_eq!(moved().socket_for_clients(&places("/h/run/s", false)), None, "it was tried already");
    }

    #[test]
    fn only_a_lock_that_is_held_names_a_holder() -> io::Result<()> {
        let home = std::env::temp_dir().join(format!("chorus-proto-{}", uuid::Uuid::new_v4()));
        fs::create_dir_all(home.join("run"))?;
        fs::write(home.join(LOCK_FILE), "7\n/run/s\n")?;
        assert_eq!(lock_holder(&home), None);
        let lock = File::open(&home)?;
        lock.lock()?;
        assert_eq!(lock_holder(&home), Some(holder_of(7, &["/run/s"])));
        fs::remove_file(home.join(LOCK_FILE))?;
        assert_eq!(lock_holder(&home), Some(LockHolder::default()));
        drop(lock);
        assert_eq!(lock_holder(&home), None);
        fs::remove_dir_all(&home)
    }
}
