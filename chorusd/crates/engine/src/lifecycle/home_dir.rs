//! Creates the home directory and checks that it is ours and that nobody else can write to it.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::create_private;
use chorus_proto::ErrorKind;

/// Directories that every home has.
const HOME_DIRS: [&str; 5] = ["agents", "db", "log", "run", "trash"];

/// Name of the directory in which a restore stages files before it moves them into place.
pub const RESTORE_STAGING_DIR: &str = ".restore";

/// Creates the home if it is missing, and refuses one that others could write to.
///
/// # Errors
/// `denied` for a home that is not ours or has an unfinished restore; `storage_failed` if it cannot be created.
pub fn prepare(home: &Path) -> Result<()> {
    create_and_check(home)?;
    if home.join(RESTORE_STAGING_DIR).symlink_metadata().is_ok() {
        let what = format!("an earlier restore into {} is incomplete", home.display());
        return Err(Error::new(ErrorKind::Denied, what).hint("move the home, and restore the backup again"));
    }
    create_subdirectories(home)
}

/// Like [`prepare`], for a restore, which may start again after an unfinished one.
pub fn prepare_for_restore(home: &Path) -> Result<()> {
    create_and_check(home)?;
    create_subdirectories(home)
}

/// Creates the home if it is missing, but nothing in it.
fn create_and_check(home: &Path) -> Result<()> {
    create_private(home).map_err(|e| Error::io(format_args!("cannot create {}", home.display()), &e))?;
    let metadata = home.metadata().map_err(|e| Error::io(format_args!("cannot access {}", home.display()), &e))?;
    if !metadata.is_dir() {
        return Err(Error::new(ErrorKind::AlreadyExists, format!("{} is not a directory", home.display()))
            .hint("set another home in CHORUS_HOME"));
    }
    let us = rustix::process::geteuid().as_raw();
    if metadata.uid() != us {
        let owner = metadata.uid();
        let hint = format!("run it as user {owner}, or set another home in CHORUS_HOME");
        return Err(denied_error(home, &format!("belongs to user {owner}, not to user {us}"), hint));
    }
    if metadata.mode() & 0o022 != 0 {
        let hint = format!("run `chmod 700 {}`, or set another home in CHORUS_HOME", home.display());
        let why = format!("is writable by others (mode {:04o})", metadata.mode() & 0o7777);
        return Err(denied_error(home, &why, hint));
    }
    Ok(())
}

fn create_subdirectories(home: &Path) -> Result<()> {
    for dir in HOME_DIRS {
        let path = home.join(dir);
        create_private(&path).map_err(|e| Error::io(format_args!("cannot create {}", path.display()), &e))?;
    }
    Ok(())
}

fn denied_error(home: &Path, why: &str, hint: String) -> Error {
    Error::new(ErrorKind::Denied, format!("the home {} {why}", home.display())).hint(hint)
}
