//! The configuration file without its daemon: `chorusd config-file` reads and edits it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use chorus_proto::methods::settings::{Show, ShowParams};
use serde::{Deserialize, Serialize};

use crate::app::{App, parse_result};
use crate::connect;
use crate::error::Error;

/// The file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FilePlace {
    pub path: PathBuf,
    pub exists: bool,
}

/// The result of an edit.
#[derive(Debug, Deserialize)]
pub(super) struct Edited {
    pub file: PathBuf,
    pub key: String,
    pub created: bool,
    pub changed: bool,
    pub old: Option<String>,
}

/// Connects to the daemon if one is running, on this machine or on another one.
pub(super) fn connect_if_running(app: &mut App) -> Result<bool, Error> {
    if app.host()?.is_none() && !app.is_connected() {
        match connect::connect_if_running(app.paths()?, &app.global)? {
            Some(client) => app.set_client(client),
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// Returns the file of the running daemon, otherwise the one that a daemon would read.
pub(super) fn find_file(app: &mut App) -> Result<FilePlace, Error> {
    if connect_if_running(app)?
        && let Some(file) = app.call::<Show>(&ShowParams {})?.file
    {
        return Ok(FilePlace { exists: file.exists, path: file.path.into() });
    }
    let found = connect::run_to_json(&["config-file", "path"], app.global.socket.as_deref(), None)?;
    parse_result(&found)
}

/// Edits the file with `chorusd config-file`.
pub(super) fn edit(app: &App, arguments: &[&OsStr], file: Option<&Path>) -> Result<Edited, Error> {
    let arguments: Vec<&OsStr> = [OsStr::new("config-file")].iter().chain(arguments).copied().collect();
    parse_result(&connect::run_to_json(&arguments, app.global.socket.as_deref(), file)?)
}
