//! The socket file: made where nothing is, put in place of a stale one, never of anything else.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use chorus_proto::ErrorKind;
use interprocess::local_socket::tokio::Listener;
use interprocess::local_socket::traits::Stream as _;
use interprocess::local_socket::{GenericFilePath, ListenerOptions, Stream, ToFsName as _};

use crate::failure::{Failure, Result};
use crate::store::agents_dir::create_private;

/// Longest path of a socket: `sun_path` less its NUL.
const MAX_PATH: usize = 107;

/// Listens at `path`. Must be called inside a runtime.
///
/// # Errors
/// `already_exists` where something is in the way, `denied` where the directory is not safe.
pub fn listen(path: &Path) -> Result<Listener> {
    let shown = path.display();
    if path.as_os_str().len() > MAX_PATH {
        return Err(Failure::invalid(format!(
            "the socket path has {} bytes, more than {MAX_PATH}: {shown}",
            path.as_os_str().len()
        ))
        .hint("name a shorter one with --socket or CHORUS_SOCKET"));
    }
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    check_dir(dir)?;
    clear_the_way(path)?;
    let failed = |e: &io::Error| Failure::io(format_args!("cannot listen at {shown}"), e);
    let name = path.to_fs_name::<GenericFilePath>().map_err(|e| failed(&e))?;
    // The umask is 077: nobody else can connect before the mode is set either.
    let listener = ListenerOptions::new().name(name).create_tokio().map_err(|e| failed(&e))?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(|e| failed(&e))?;
    Ok(listener)
}

/// The directory must be such that nobody else can put a socket of their own in our place.
fn check_dir(dir: &Path) -> Result<()> {
    let mut existing = dir;
    while !existing.exists() {
        existing = existing.parent().filter(|up| !up.as_os_str().is_empty()).unwrap_or(Path::new("/"));
    }
    let failed = |e: &io::Error| Failure::io(format_args!("cannot use {}", dir.display()), e);
    let metadata = existing.metadata().map_err(|e| failed(&e))?;
    let us = rustix::process::geteuid().as_raw();
    let refused = |why: String| {
        Failure::new(ErrorKind::Denied, format!("the directory {} {why}", existing.display()))
            .hint("name another place with --socket or CHORUS_SOCKET; is XDG_RUNTIME_DIR that of another user?")
    };
    if !metadata.is_dir() {
        return Err(refused("is not a directory".into()));
    }
    if metadata.uid() != us && metadata.uid() != 0 {
        return Err(refused(format!("belongs to user {}, not to user {us}", metadata.uid())));
    }
    let (others_write, sticky) = (metadata.mode() & 0o022 != 0, metadata.mode() & 0o1000 != 0);
    if others_write && !sticky {
        return Err(refused("can be written to by others".into()));
    }
    create_private(dir).map_err(|e| failed(&e))
}

/// Removes a socket that nobody listens at.
fn clear_the_way(path: &Path) -> Result<()> {
    let shown = path.display();
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(Failure::io(format_args!("cannot look at {shown}"), &e)),
    };
    let in_the_way = |what: &str| {
        Failure::new(ErrorKind::AlreadyExists, format!("{shown} {what}"))
            .hint("move it away, or name another socket with --socket or CHORUS_SOCKET")
    };
    if !metadata.file_type().is_socket() {
        return Err(in_the_way("exists and is not a socket"));
    }
    let name = path.to_fs_name::<GenericFilePath>().map_err(|e| Failure::io("cannot use the socket's name", &e))?;
    match Stream::connect(name) {
        Ok(_) => Err(in_the_way("is the socket of a program that is running")),
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)
            .map_err(|e| Failure::io(format_args!("cannot remove the stale socket {shown}"), &e)),
        Err(e) => Err(in_the_way(&format!("is a socket that cannot be tried: {e}"))),
    }
}
