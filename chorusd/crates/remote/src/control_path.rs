//! The sockets of shared lines: through them, ssh lets later connections use the line of an earlier one.

use std::fs::DirBuilder;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use chorus_proto::paths::{self, InstancePaths};

/// The variable that selects another home.
const HOME_VARIABLE: &str = "CHORUS_HOME";

/// Longest path of a Unix socket, in bytes.
const MAX_SOCKET_PATH_BYTES: usize = 107;

/// Bytes that ssh appends to the path while it creates the socket.
const SUFFIX_BYTES: usize = 17;

/// Returns the directory of the sockets, which is private; `None` if there is no place for it.
pub(crate) fn directory(places: &InstancePaths) -> Option<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|dir| dir.is_absolute() && paths::is_runtime_dir(dir)).map(|dir| dir.join("chorus"));
    let isolated = std::env::var_os(HOME_VARIABLE).is_some_and(|home| !home.is_empty());
    match runtime.filter(|_| !isolated) {
        Some(dir) => Some(dir),
        None => std::path::absolute(places.home.join("run")).ok(),
    }
}

/// Returns the path of the socket for a command and a destination; `None` if it would be too long, or would not be private.
pub(crate) fn socket(directory: &Path, rsh: &str, destination: &str) -> Option<PathBuf> {
    let mut hasher = DefaultHasher::new();
    (rsh, destination).hash(&mut hasher);
    let path = directory.join(format!("ssh-{:016x}", hasher.finish()));
    let bytes = path.as_os_str().as_bytes();
    // ssh expands `%` in the path, and splits the option at blanks.
    let is_plain = !bytes.iter().any(|byte| matches!(byte, b'%' | b'"' | b'\\' | b'$') || byte.is_ascii_whitespace());
    (is_plain && bytes.len() + SUFFIX_BYTES <= MAX_SOCKET_PATH_BYTES).then_some(path)
}

/// Creates the directory, if necessary. Returns false if others could replace a socket in it.
pub(crate) fn prepare(directory: &Path) -> bool {
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    let us = rustix::process::geteuid().as_raw();
    directory.symlink_metadata().is_ok_and(|about| about.is_dir() && about.uid() == us && about.mode() & 0o077 == 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_socket_has_a_short_name_of_its_own() {
        let dir = Path::new("/run/user/1000/chorus");
        let name = |rsh, destination| socket(dir, rsh, destination);
        assert_eq!(name("ssh", "box"), name("ssh", "box"));
        assert!(name("ssh", "box") != name("ssh", "mara@box") && name("ssh", "box") != name("ssh -p 2", "box"));
        assert_eq!(name("ssh", "box").map(|path| path.as_os_str().len()), Some(dir.as_os_str().len() + 21));
        assert_eq!(socket(Path::new(&format!("/{}", "d".repeat(80))), "ssh", "box"), None);
        assert_eq!(socket(Path::new("/home/a b"), "ssh", "box"), None);
    }

    #[test]
    fn a_directory_of_others_is_not_used() -> std::io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = temp.path().join("run");
        assert!(prepare(&dir));
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755))?;
        assert!(!prepare(&dir));
        Ok(())
    }
}
