//! The command that a coding tool is to run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::{Error, os_error_text};

/// Environment variables that select the instance.
const INSTANCE_VARIABLES: [&str; 3] = ["CHORUS_HOME", "CHORUS_SOCKET", "CHORUS_CONFIG"];

/// Returns the absolute form of a path.
///
/// # Errors
/// The current directory is gone.
pub fn absolute(path: &OsStr) -> Result<String, Error> {
    let absolute = std::path::absolute(path).map_err(|error| Error::failed(os_error_text(&error)))?;
    Ok(absolute.to_string_lossy().into_owned())
}

/// Returns the variables that select the instance, with the values that they have now.
///
/// # Errors
/// The current directory is gone.
pub fn instance_variables() -> Result<Vec<(String, String)>, Error> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let variables = INSTANCE_VARIABLES.iter().filter_map(|name| Some((name, set(name)?)));
    variables.map(|(name, value)| Ok(((*name).to_owned(), absolute(&value)?))).collect()
}

/// Returns the path of this program: as PATH names it, if it does, because that stays the same when it is updated.
///
/// # Errors
/// The system does not tell.
pub fn program() -> Result<PathBuf, Error> {
    let own = std::env::current_exe().map_err(|error| Error::failed(os_error_text(&error)))?;
    let is_own = |path: &Path| path.is_absolute() && std::fs::canonicalize(path).is_ok_and(|found| found == own);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let name = own.file_name().unwrap_or_default();
    Ok(std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| is_own(path)).unwrap_or(own))
}
