//! Checks that the server belongs to this user or root. Any other server must not receive the requests.

use std::fmt;
use std::io;
use std::path::Path;

use interprocess::local_socket::traits::StreamCommon;

/// The server, or the directory of its socket, belongs to another user; nothing was sent. It is the source of an
/// [`io::Error`] of kind [`io::ErrorKind::PermissionDenied`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignServer {
    what: String,
    owner: u32,
    user: u32,
}

impl fmt::Display for ForeignServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, owner, user } = self;
        match user {
            0 => write!(f, "{what} belongs to user {owner}, not to root"),
            _ => write!(f, "{what} belongs to user {owner}, not to user {user} or root"),
        }
    }
}

impl std::error::Error for ForeignServer {}

impl ForeignServer {
    /// Returns true if `error` contains a [`ForeignServer`].
    #[must_use]
    pub fn is_cause_of(error: &io::Error) -> bool {
        Self::find_in(error).is_some()
    }

    /// Returns the [`ForeignServer`] in `error`.
    #[must_use]
    pub fn find_in(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// Returns the other user if this one is root, who can run commands as that user.
    #[must_use]
    pub fn owner_for_root(&self) -> Option<u32> {
        (self.user == 0).then_some(self.owner)
    }
}

/// Rejects a socket in a directory, or behind a link, of another user, who could replace the socket.
///
/// # Errors
/// [`ForeignServer`], or the system's error.
#[cfg(unix)]
pub(crate) fn check_directory(socket: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;

    let dir = socket.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    refuse_others(dir.symlink_metadata()?.uid(), || dir.display().to_string())
}

/// Rejects a server of another user at the other end of `stream`.
///
/// # Errors
/// [`ForeignServer`], or the system's error.
#[cfg(unix)]
pub(crate) fn check_peer(stream: &impl StreamCommon, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;

    let owner = match stream.peer_creds() {
        Ok(peer) => peer.euid(),
        // The server's process is in another pid namespace, for example on the host of this container.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => None,
        Err(error) => return Err(error),
    };
    let owner = match owner {
        Some(owner) => owner,
        None => path.symlink_metadata()?.uid(),
    };
    refuse_others(owner, || format!("the program listening on {}", path.display()))
}

#[cfg(unix)]
fn refuse_others(owner: u32, what: impl FnOnce() -> String) -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    if owner == user || owner == 0 {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, ForeignServer { what: what(), owner, user }))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the signature is that of the systems that check")]
pub(crate) fn check_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Accepts every server: on systems without peer credentials, the permissions of the pipe decide.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the signature is that of the systems that check")]
pub(crate) fn check_peer(_: &impl StreamCommon, _: &Path) -> io::Result<()> {
    Ok(())
}
