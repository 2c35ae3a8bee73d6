//! `chorusctl config edit`: edits config.toml in an editor, and checks it before it is replaced.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use chorus_proto::error::exit;
use chorus_proto::methods::config::{Reload, ReloadParams};

use serde_json::json;
use serde_json::value::to_raw_value;

use super::{offline, reload};
use crate::app::App;
use crate::connect;
use crate::error::{Error, os_error_text};
use crate::ui::stdout::OutputFormat;
use crate::ui::{sanitize, terminal};

/// The editor if the user names none.
const DEFAULT_EDITOR: &str = "vi";

/// Edit config.toml, and check it before it is replaced
///
/// Opens a copy in $VISUAL, otherwise $EDITOR, otherwise vi. If the result has an error, asks whether to edit it again. The daemon then reads
/// the file. A file that does not exist yet starts with every key and its default as a comment.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    app.refuse_host("config edit")?;
    if named_editor().is_none() && !terminal::can_prompt() {
        return Err(Error::usage("not a terminal, and no editor is named")
            .with_hint("set EDITOR to the command of an editor, or set one key: chorusctl config set KEY VALUE"));
    }
    offline::ensure_named_file(app)?;
    let place = offline::find_file(app)?;
    let shown = place.path.display().to_string();
    let old = match fs::read_to_string(&place.path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::for_file(&shown, &error)),
    };
    let start = match &old {
        Some(text) => text.clone(),
        None => connect::run_to_text(&["config-file", "template"], None, None)?,
    };
    // The file may have keys, and be readable for its owner only.
    let only_me = fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().prefix("chorus-config-").permissions(only_me).tempdir();
    let folder = folder.map_err(|error| Error::for_file("a temporary directory", &error))?;
    let (draft, before) = (folder.path().join("config.toml"), folder.path().join("before.toml"));
    let write = |file: &Path, text: &str| {
        fs::write(file, text).map_err(|error| Error::for_file(&file.display().to_string(), &error))
    };
    write(&draft, &start)?;
    if let Some(old) = &old {
        write(&before, old)?;
    }
    let old = old.is_some().then_some(&*before);
    match edit_until_valid(app, &place.path, &draft, (&start, old)) {
        Ok(EditOutcome::Saved) => {}
        Ok(EditOutcome::Unchanged) => {
            if let Err(error) = connect::read_config(app.global.socket.as_deref(), Some(&place.path)) {
                return Err(error.with_detail("the file was not changed"));
            }
            return print(app, false, &place.path, &format!("{} was not changed", sanitize::one_line(&shown)));
        }
        Ok(EditOutcome::Discarded) => return Err(Error::cancelled()),
        // Also what is no text.
        Err(error) if fs::read(&draft).is_ok_and(|draft| draft != start.as_bytes()) => {
            let kept = keep_draft(folder, &draft);
            return Err(error.with_detail(&format!("nothing was changed, and your text is in {}", kept.display())));
        }
        Err(error) => return Err(error),
    }
    if offline::connect_if_running(app)? {
        return app.call_and_print::<Reload>(&ReloadParams {}, |app, result| reload::print_reload(app, &result));
    }
    let line = format!("saved {}; a daemon reads it when it starts", sanitize::one_line(&shown));
    print(app, true, &place.path, &line)
}

/// How the editing of a draft ended.
enum EditOutcome {
    Saved,
    Unchanged,
    Discarded,
}

/// Opens the draft in an editor, again and again until it can be used, and replaces `file` by it. `start` is the draft as it was, `old` a copy
/// of the file as it was, if there was one.
fn edit_until_valid(
    app: &mut App,
    file: &Path,
    draft: &Path,
    (start, old): (&str, Option<&Path>),
) -> Result<EditOutcome, Error> {
    loop {
        open_editor(draft)?;
        let new = fs::read_to_string(draft).map_err(|error| Error::for_file("what the editor saved", &error))?;
        if new == start {
            return Ok(EditOutcome::Unchanged);
        }
        let mut arguments: Vec<&OsStr> = vec!["replace".as_ref(), draft.as_os_str()];
        if let Some(old) = old {
            arguments.extend([OsStr::new("--old"), old.as_os_str()]);
        }
        match offline::edit(app, &arguments, Some(file)) {
            Ok(_) => return Ok(EditOutcome::Saved),
            Err(error) if error.exit_status() == exit::USAGE && terminal::can_prompt() => {
                error.print(app.stderr);
                match ask_to_edit_again() {
                    Some(true) => {}
                    Some(false) => return Ok(EditOutcome::Discarded),
                    None => return Err(Error::refused("cancelled")),
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Prints the line, or the result as JSON.
fn print(app: &mut App, is_changed: bool, file: &Path, line: &str) -> Result<(), Error> {
    if app.stdout.format() == OutputFormat::Text {
        return app.stdout.status_line(line);
    }
    let json = to_raw_value(&json!({"path": file, "changed": is_changed})).map_err(chorus_proto::CallError::from)?;
    app.stdout.json_line(&json)
}

/// Returns the command of the editor that the user names.
fn named_editor() -> Option<OsString> {
    ["VISUAL", "EDITOR"].into_iter().filter_map(std::env::var_os).find(|editor| !editor.is_empty())
}

/// Runs the editor, whose command may have arguments.
fn open_editor(file: &Path) -> Result<(), Error> {
    let editor = named_editor().unwrap_or_else(|| DEFAULT_EDITOR.into());
    let mut script = editor.clone();
    script.push(OsString::from(" \"$@\""));
    let shown = sanitize::one_line(&editor.to_string_lossy());
    let ended = Command::new("sh").arg("-c").arg(script).arg("sh").arg(file).status();
    let hint = "set EDITOR to the command of an editor; nothing was changed";
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Error::failed(format!("the editor `{shown}` failed")).with_hint(hint)),
        Err(error) => Err(Error::failed(format!("cannot run `{shown}`: {}", os_error_text(&error))).with_hint(hint)),
    }
}

/// Asks if a text that cannot be used is to be edited again, rather than discarded. `None` without an answer.
fn ask_to_edit_again() -> Option<bool> {
    let mut stderr = io::stderr().lock();
    loop {
        let asked = write!(stderr, "[e]dit again, or [d]iscard your changes? ").and_then(|()| stderr.flush());
        let mut answer = String::new();
        let read = asked.and_then(|()| io::stdin().read_line(&mut answer));
        match (read, answer.trim().to_ascii_lowercase().as_str()) {
            (Ok(0) | Err(_), _) => {
                let _ = writeln!(stderr);
                return None;
            }
            (_, "e" | "edit") => return Some(true),
            (_, "d" | "discard") => return Some(false),
            _ => {}
        }
    }
}

/// Keeps the directory of the draft. Returns the draft.
fn keep_draft(folder: tempfile::TempDir, draft: &Path) -> PathBuf {
    let _ = folder.keep();
    draft.to_owned()
}
