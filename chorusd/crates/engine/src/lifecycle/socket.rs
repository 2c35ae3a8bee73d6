//! Binds the socket file: creates it, or replaces a stale socket, but never anything else.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::create_private;
use chorus_base::private_socket;
use chorus_base::sync::Mutex;
use chorus_proto::ErrorKind;
use interprocess::local_socket::tokio::Listener;
use interprocess::local_socket::traits::Stream as _;
use interprocess::local_socket::{GenericFilePath, Stream, ToFsName as _};
use interprocess::os::unix::uds_local_socket::tokio::Listener as UnixSocket;

use super::file_identity::FileIdentity;

/// Limit of a socket path in bytes: the size of `sun_path` without the NUL.
const MAX_PATH_BYTES: usize = 107;

/// The path that the daemon listens at now, which changes if its socket is lost.
#[derive(Debug, Clone)]
pub struct SocketPath(Arc<Mutex<PathBuf>>);

impl SocketPath {
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self(Arc::new(Mutex::new(path)))
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn get(&self) -> PathBuf {
        self.0.lock().clone()
    }

    /// Changes the path.
    pub fn set(&self, path: PathBuf) {
        *self.0.lock() = path;
    }
}

/// A bound, listening socket. Dropping it removes its file, unless the file has been replaced since.
#[derive(Debug)]
pub struct BoundSocket {
    listener: UnixListener,
    file: SocketFile,
}

/// The file of a socket.
#[derive(Debug)]
pub struct SocketFile {
    pub path: PathBuf,
    /// `None` if the file is not visible from here.
    pub identity: Option<FileIdentity>,
    /// True if a service manager created the file, and will remove it.
    pub is_activated: bool,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.is_activated && self.identity.is_some() && self.identity == identity_of(&self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Returns the identity of the file at `path` itself, without following a link.
#[must_use]
pub fn identity_of(path: &Path) -> Option<FileIdentity> {
    path.symlink_metadata().ok().map(|found| FileIdentity::from_metadata(&found))
}

impl BoundSocket {
    /// Wraps a socket that a service manager created at `path`.
    #[must_use]
    pub fn from_activation(listener: UnixListener, path: PathBuf) -> Self {
        Self { listener, file: SocketFile { identity: identity_of(&path), path, is_activated: true } }
    }

    #[must_use]
    pub fn file(&self) -> &SocketFile {
        &self.file
    }

    /// Accepts connections from now on. The file is removed when the second part of the result is dropped. Must be
    /// called inside a runtime.
    pub fn listen(self) -> Result<(Listener, SocketFile)> {
        let socket = UnixSocket::try_from(OwnedFd::from(self.listener));
        let listener =
            socket.map_err(|e| Error::io(format_args!("cannot listen on {}", self.file.path.display()), &e))?;
        Ok((listener.into(), self.file))
    }
}

/// Binds a socket at `path`. Clients can connect at once.
///
/// # Errors
/// `already_exists` if something is in the way, `denied` if others could replace the socket.
pub fn bind(path: &Path) -> Result<BoundSocket> {
    let shown = path.display();
    if path.as_os_str().len() > MAX_PATH_BYTES {
        return Err(Error::invalid(format!(
            "the socket path has {} bytes, more than {MAX_PATH_BYTES}: {shown}",
            path.as_os_str().len()
        ))
        .hint("set a shorter path with --socket or CHORUS_SOCKET"));
    }
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    ensure_safe_dir(dir)?;
    remove_stale_socket(path)?;
    let failed = |e: &io::Error| Error::io(format_args!("cannot listen on {shown}"), e);
    let listener = private_socket::bind(path).map_err(|e| failed(&e))?;
    let file = SocketFile { path: path.to_owned(), identity: identity_of(path), is_activated: false };
    listener.set_nonblocking(true).map_err(|e| failed(&e))?;
    Ok(BoundSocket { listener, file })
}

/// Ensures that nobody else can replace the socket in this directory by one of their own.
fn ensure_safe_dir(dir: &Path) -> Result<()> {
    // A dangling link counts as existing too: its owner could move whatever is created through it.
    let mut existing = dir;
    while existing.symlink_metadata().is_err() {
        existing = existing.parent().filter(|up| !up.as_os_str().is_empty()).unwrap_or(Path::new("/"));
    }
    let failed = |e: &io::Error| Error::io(format_args!("cannot use {}", dir.display()), e);
    let us = rustix::process::geteuid().as_raw();
    let refused = |what: &str, why: String| {
        Error::new(ErrorKind::Denied, format!("the {what} {} {why}", existing.display())).hint(
            "set another socket with --socket or CHORUS_SOCKET, and check if XDG_RUNTIME_DIR belongs to \
             another user",
        )
    };
    let foreign = |what, owner| match owner {
        0 => Ok(()),
        owner if owner == us => Ok(()),
        owner => Err(refused(what, format!("belongs to user {owner}, not to user {us}"))),
    };
    let link = existing.symlink_metadata().map_err(|e| failed(&e))?;
    if link.is_symlink() {
        foreign("link", link.uid())?;
    }
    let metadata = existing.metadata().map_err(|e| failed(&e))?;
    let refused = |why: &str| refused("directory", why.to_owned());
    if !metadata.is_dir() {
        return Err(refused("is not a directory"));
    }
    foreign("directory", metadata.uid())?;
    let (others_write, sticky) = (metadata.mode() & 0o022 != 0, metadata.mode() & 0o1000 != 0);
    if others_write && !sticky {
        return Err(refused("is writable by others"));
    }
    create_private(dir).map_err(|e| failed(&e))
}

/// Removes a socket that nobody listens at.
fn remove_stale_socket(path: &Path) -> Result<()> {
    let shown = path.display();
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Error::io(format_args!("cannot access {shown}"), &e)),
    };
    let in_the_way = |what: &str| {
        Error::new(ErrorKind::AlreadyExists, format!("{shown} {what}"))
            .hint("move it, or set another socket with --socket or CHORUS_SOCKET")
    };
    if !metadata.file_type().is_socket() {
        return Err(in_the_way("exists and is not a socket"));
    }
    let name = path.to_fs_name::<GenericFilePath>().map_err(|e| Error::io("cannot use the socket's name", &e))?;
    match Stream::connect(name) {
        Ok(_) => Err(in_the_way("is in use by a running program")),
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)
            .map_err(|e| Error::io(format_args!("cannot remove the stale socket {shown}"), &e)),
        Err(e) => Err(in_the_way(&format!("is a socket that cannot be checked: {e}"))),
    }
}
