//! The configuration file without its daemon: `chorusd config-file` reads and edits it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use chorus_proto::methods::settings::{From, Setting, Show, ShowParams};
use serde::{Deserialize, Serialize};

use crate::app::{App, parse_result};
use crate::connect;
use crate::error::Error;
use crate::ui::sanitize;

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

/// Refuses an edit of another file than the one that CHORUS_CONFIG names, which the running daemon does not use.
pub(super) fn ensure_named_file(app: &mut App) -> Result<(), Error> {
    let Some(named) = named_file(app)? else { return Ok(()) };
    let Some(used) = file_of_daemon(app)?.filter(|used| !is_same_file(used, &named)) else { return Ok(()) };
    let what = format!("CHORUS_CONFIG names {}, but the daemon uses {}", named.display(), used.display());
    Err(Error::refused(what)
        .with_hint("unset CHORUS_CONFIG, or restart the daemon with it: chorusctl daemon restart; nothing was changed"))
}

/// Warns if the daemon uses another file than the one that CHORUS_CONFIG names.
pub(super) fn warn_about_other_file(app: &mut App, used: &Path) -> Result<(), Error> {
    if let Some(named) = named_file(app)?.filter(|named| !is_same_file(used, named)) {
        let (named, used) = (named.to_string_lossy(), used.to_string_lossy());
        let (named, used) = (sanitize::one_line(&named), sanitize::one_line(&used));
        app.stderr.warning(&format!("CHORUS_CONFIG names {named}, but the daemon uses {used}"));
    }
    Ok(())
}

/// Warns that the file cannot be used as it is now.
pub(super) fn warn_about_broken_file(app: &App, problem: &str) {
    app.stderr.warning(&format!("{}; these are the values that the daemon read before", sanitize::one_line(problem)));
    app.stderr.hint("fix the file: chorusctl config edit");
}

/// Warns about values in the environment of this shell that the daemon does not have in its own.
pub(super) fn warn_about_variables(app: &mut App, settings: &[Setting]) -> Result<(), Error> {
    if app.host()?.is_some() {
        return Ok(());
    }
    let is_set = |name: &String| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let only_here = settings.iter().filter(|setting| setting.from != From::Environment);
    let only_here: Vec<String> = only_here.filter_map(|setting| variable_of(&setting.key)).filter(is_set).collect();
    if !only_here.is_empty() {
        let (names, verb) = (only_here.join(", "), if only_here.len() == 1 { "is" } else { "are" });
        app.stderr.warning(&format!("{names} {verb} set here, but not in the environment of the daemon"));
    }
    Ok(())
}

/// Returns the environment variable for a key: with its table for some tables, as `config show --default` lists them. Keys of tables with names
/// of the user's choice have none.
fn variable_of(key: &str) -> Option<String> {
    let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
    match table {
        "store" | "store.sessions" | "cluster" | "metrics" | "traces" => {
            Some(format!("CHORUS_{}_{}", table.replace('.', "_"), name).to_uppercase())
        }
        "providers" | "prices" | "aliases" | "mcp" | "hosts" | "permissions" | "permission_grants" => None,
        _ if table.contains('.') => None,
        _ => Some(format!("CHORUS_{name}").to_uppercase()),
    }
}

/// Returns the file that the user named for daemons of this machine.
fn named_file(app: &mut App) -> Result<Option<PathBuf>, Error> {
    if app.host()?.is_some() || std::env::var_os("CHORUS_CONFIG").is_none_or(|path| path.is_empty()) {
        return Ok(None);
    }
    Ok(Some(app.paths()?.config.clone()))
}

fn file_of_daemon(app: &mut App) -> Result<Option<PathBuf>, Error> {
    if !connect_if_running(app)? {
        return Ok(None);
    }
    Ok(app.call::<Show>(&ShowParams {})?.file.map(|file| file.path.into()))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    one == other || whole(one) == whole(other)
}

/// Edits the file with `chorusd config-file`.
pub(super) fn edit(app: &App, arguments: &[&OsStr], file: Option<&Path>) -> Result<Edited, Error> {
    let arguments: Vec<&OsStr> = [OsStr::new("config-file")].iter().chain(arguments).copied().collect();
    parse_result(&connect::run_to_json(&arguments, app.global.socket.as_deref(), file)?)
}
