//! Changes one key: by the running daemon, which applies it at once, otherwise in the file.

use std::ffi::OsStr;

use chorus_proto::methods::config::{Set, SetParams, SetResult};
use chorus_proto::methods::settings;
use serde_json::value::to_raw_value;

use super::{STORED_KEYS, offline};
use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;

/// A change that was made.
pub(super) struct Change {
    pub result: SetResult,
    /// The daemon has applied it, or said what it waits for.
    pub is_live: bool,
}

/// Sets or removes a key.
pub(super) fn change(app: &mut App, command: &str, params: &SetParams) -> Result<Change, Error> {
    if offline::connect_if_running(app)? {
        offline::ensure_named_file(app)?;
        return Ok(Change { result: app.call::<Set>(params)?, is_live: true });
    }
    let edited = match &params.value {
        Some(value) => offline::edit(app, &["set", "--", &params.key, value].map(OsStr::new), None)?,
        None => offline::edit(app, &["unset", "--", &params.key].map(OsStr::new), None)?,
    };
    let mut result = SetResult {
        file: edited.file.to_string_lossy().into_owned(),
        key: edited.key,
        changed: edited.changed,
        created: edited.created,
        old: edited.old,
        setting: None,
        removed_setting: None,
        overridden_by: None,
        restart: false,
    };
    let Some((_, name)) = STORED_KEYS.iter().find(|(key, _)| *key == result.key) else {
        return Ok(Change { result, is_live: false });
    };
    if app.global.no_autostart {
        let name = format!("no daemon is running: a value of `settings set {name}` still overrides the file");
        app.stderr.warning(&name);
        return Ok(Change { result, is_live: false });
    }
    let params = settings::SetParams { key: (*name).to_owned(), value: "".into(), command: Some(command.to_owned()) };
    let saved = match result.changed {
        true => format!("{} was saved in {}", result.key, result.file),
        false => format!("{} was not changed", result.file),
    };
    let unset = app.call::<settings::Set>(&params).map_err(|error| error.with_detail(&saved))?;
    result.overridden_by = match unset.setting.from {
        settings::From::Environment => unset.setting.place.clone(),
        _ => None,
    };
    result.removed_setting = unset.old;
    result.setting = Some(unset.setting);
    Ok(Change { result, is_live: true })
}

/// Prints what belongs to a change besides its value.
pub(super) fn print_consequences(app: &mut App, change: &Change) -> Result<(), Error> {
    let Change { result, is_live } = change;
    let text = |text: &str| sanitize::one_line(text);
    app.stdout.flush()?;
    if let Some(old) = &result.removed_setting {
        let key = text(&result.key);
        app.stdout.status_line(&format!("removed the stored setting {}, which would override {key}", text(old)))?;
    }
    app.stdout.flush()?;
    if let Some(variable) = &result.overridden_by {
        app.stderr.warning(&format!("saved, but {} in the daemon's environment overrides it", text(variable)));
    } else if result.restart {
        app.stderr.hint("it applies after a restart: chorusctl daemon restart");
    } else if !is_live && !app.stdout.is_quiet() {
        app.stderr.line("no daemon is running: the next one reads the file when it starts");
    }
    Ok(())
}

/// Prints a change as JSON if that is the format. Returns false for text.
pub(super) fn print_json(app: &mut App, change: &Change) -> Result<bool, Error> {
    if app.stdout.format() == OutputFormat::Text {
        return Ok(false);
    }
    let json = to_raw_value(&change.result).map_err(chorus_proto::CallError::from)?;
    app.stdout.json_line(&json)?;
    Ok(true)
}
