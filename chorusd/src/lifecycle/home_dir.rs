//! The home directory: private, and ours.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use chorus_proto::ErrorKind;

use crate::error::{Error, Result};
use crate::store::private_fs::create_private;

/// Directories that a home always has.
const HOME_DIRS: [&str; 5] = ["agents", "db", "log", "run", "trash"];

/// Name of the directory with what a restore has not put in its place yet.
pub const RESTORE_STAGING_DIR: &str = ".restore";

/// Makes the home where it is missing, and refuses one that others could write to.
///
/// # Errors
/// `denied` for a home that is not ours, `storage_failed` where it cannot be made.
pub fn prepare(home: &Path) -> Result<()> {
    create_and_check(home)?;
    if home.join(RESTORE_STAGING_DIR).symlink_metadata().is_ok() {
        let what = format!("a restore into {} was not finished", home.display());
        return Err(Error::new(ErrorKind::Denied, what).hint("move the home aside, and restore the backup again"));
    }
    create_subdirectories(home)
}

/// As [`prepare`], for a restore, which takes up one that was not finished.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_for_restore(home: &Path) -> Result<()> {
    create_and_check(home)?;
    create_subdirectories(home)
}

/// Makes the home where it is missing, and nothing in it.
fn create_and_check(home: &Path) -> Result<()> {
    create_private(home).map_err(|e| Error::io(format_args!("cannot make {}", home.display()), &e))?;
    let metadata = home.metadata().map_err(|e| Error::io(format_args!("cannot look at {}", home.display()), &e))?;
    if !metadata.is_dir() {
        return Err(Error::new(ErrorKind::AlreadyExists, format!("{} is not a directory", home.display()))
            .hint("name another home in CHORUS_HOME"));
    }
    let us = rustix::process::geteuid().as_raw();
    if metadata.uid() != us {
        let owner = metadata.uid();
        let hint = format!("run it as user {owner}, or name another home in CHORUS_HOME");
        return Err(denied_error(home, &format!("belongs to user {owner}, not to user {us}"), hint));
    }
    if metadata.mode() & 0o022 != 0 {
        let hint = format!("chmod 700 {}, or name another home in CHORUS_HOME", home.display());
        let why = format!("can be written to by others (mode {:04o})", metadata.mode() & 0o7777);
        return Err(denied_error(home, &why, hint));
    }
    Ok(())
}

fn create_subdirectories(home: &Path) -> Result<()> {
    for dir in HOME_DIRS {
        let path = home.join(dir);
        create_private(&path).map_err(|e| Error::io(format_args!("cannot make {}", path.display()), &e))?;
    }
    Ok(())
}

fn denied_error(home: &Path, why: &str, hint: String) -> Error {
    Error::new(ErrorKind::Denied, format!("the home {} {why}", home.display())).hint(hint)
}
