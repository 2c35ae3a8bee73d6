//! The home directory: private, and ours.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use chorus_proto::ErrorKind;

use crate::failure::{Failure, Result};
use crate::store::agents_dir::create_private;

/// Directories that a home always has.
const DIRS: [&str; 5] = ["agents", "db", "log", "run", "trash"];

/// Name of the directory with what a restore has not put in its place yet.
pub const UNFINISHED: &str = ".restore";

/// Makes the home where it is missing, and refuses one that others could write to.
///
/// # Errors
/// `denied` for a home that is not ours, `storage_failed` where it cannot be made.
pub fn prepare(home: &Path) -> Result<()> {
    create_private(home).map_err(|e| Failure::io(format_args!("cannot make {}", home.display()), &e))?;
    let metadata = home.metadata().map_err(|e| Failure::io(format_args!("cannot look at {}", home.display()), &e))?;
    if !metadata.is_dir() {
        return Err(Failure::new(ErrorKind::AlreadyExists, format!("{} is not a directory", home.display()))
            .hint("name another home in CHORUS_HOME"));
    }
    let us = rustix::process::geteuid().as_raw();
    if metadata.uid() != us {
        return Err(refused(home, &format!("belongs to user {}, not to user {us}", metadata.uid())));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(refused(home, &format!("can be written to by others (mode {:04o})", metadata.mode() & 0o7777)));
    }
    if home.join(UNFINISHED).symlink_metadata().is_ok() {
        let what = format!("a restore into {} was not finished", home.display());
        return Err(Failure::new(ErrorKind::Denied, what).hint("move the home aside, and restore the backup again"));
    }
    for dir in DIRS {
        let path = home.join(dir);
        create_private(&path).map_err(|e| Failure::io(format_args!("cannot make {}", path.display()), &e))?;
    }
    Ok(())
}

fn refused(home: &Path, why: &str) -> Failure {
    Failure::new(ErrorKind::Denied, format!("the home {} {why}", home.display()))
        .hint(format!("chmod 700 {0}, chown it, or name another home in CHORUS_HOME", home.display()))
}
