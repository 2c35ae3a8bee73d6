//! Edits config.toml: one key, or the whole text. A text that could not be loaded never replaces the file.

mod locked_file;
mod text_edit;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use toml_edit::{Array, Key, Value};

use self::locked_file::LockedFile;
use super::keys::keys;
use super::load::{FileProblem, check_key, check_text};
use super::named_tables::{GRANTS_TABLE, NAMED_TABLES};
use super::runtime_settings::RUNTIME_SETTINGS;

/// The hint about names of keys.
const KEYS_HINT: &str = "list the keys: chorusctl config show";

/// The result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    pub file: PathBuf,
    /// The key with its table, as `config show` has it; empty if the whole text was replaced.
    pub key: String,
    /// The file did not exist before.
    pub created: bool,
    /// The text is another one now.
    pub changed: bool,
    /// The value before, as it was written in the file.
    pub old: Option<String>,
}

/// Reads variables of the environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Sets a key of the file to a value that a person typed.
///
/// # Errors
/// `invalid_params` for a key or a value that cannot be used, `invalid_config` if the rest of the file cannot be. Nothing
/// is changed then.
pub fn set_key(path: &Path, key: &str, value: &str, env: Environment<'_>) -> Result<Edited> {
    let key = FileKey::parse(key)?;
    let is_table = keys().any(|fixed| fixed.table == key.name) || NAMED_TABLES.contains(&&*key.name);
    if is_table && !value.trim_start().starts_with('{') {
        return Err(Error::invalid(format!("`{}` is a table: set one of its keys", key.name)).hint(KEYS_HINT));
    }
    edit(path, &key, |old| {
        let mut problem = None;
        for value in candidates(&key, value) {
            let text = text_edit::set_value(old, &key.path, &value)
                .map_err(|what| Error::invalid(format!("`{}` {what}", key.name)).hint(KEYS_HINT))?;
            match check_text(&text, path, env) {
                Ok(_) => return Ok(text),
                Err(found) => problem = Some(found),
            }
        }
        Err(problem.map_or_else(|| Error::internal("no value"), |problem| key_error(problem, old, path, env)))
    })
}

/// Removes a key, or a table with its keys, from the file.
///
/// # Errors
/// As [`set_key`], but not if the file does not have the key.
pub fn unset_key(path: &Path, key: &str, env: Environment<'_>) -> Result<Edited> {
    let key = FileKey::parse(key)?;
    edit(path, &key, |old| {
        let Some(text) = text_edit::unset_value(old, &key.path) else {
            return check_key(&key.name).map(|()| old.to_owned());
        };
        match check_text(&text, path, env) {
            Ok(_) => Ok(text),
            Err(problem) => Err(key_error(problem, old, path, env)),
        }
    })
}

/// Replaces the whole text of the file. `old` is the text from which `new` was made; `None` if there was no file.
///
/// # Errors
/// `conflict` if the file has another text now, `invalid_config` if `new` cannot be loaded. Nothing is changed then.
pub fn replace_text(path: &Path, old: Option<&str>, new: &str, env: Environment<'_>) -> Result<Edited> {
    let whole = FileKey { name: String::new(), path: Vec::new() };
    check_text(new, path, env).map_err(|problem| problem.into_error(path))?;
    let file = open(path)?;
    let replaced = if file.text.as_deref() == old { replace(path, &file, &whole, new)? } else { None };
    replaced.ok_or_else(|| {
        Error::new(ErrorKind::Conflict, format!("{} was changed by somebody else", path.display()))
            .hint("edit it again: chorusctl config edit")
    })
}

/// A key of the file.
struct FileKey {
    /// As `config show` has it.
    name: String,
    path: Vec<Key>,
}

impl FileKey {
    fn parse(given: &str) -> Result<Self> {
        let shown: String = given.chars().take(80).collect();
        let short = RUNTIME_SETTINGS.iter().find(|(short, _)| *short == given).map(|(_, key)| *key);
        let path = Key::parse(short.unwrap_or(given)).map_err(|_| {
            Error::invalid(format!("`{shown}` is not a key")).hint(
                "put a name with other characters than letters, digits, - and _ in quotes: 'prices.\"a/b\".input'",
            )
        })?;
        Ok(Self { name: shown_name(&path), path })
    }
}

/// Joins the parts of a key as `config show` does, which has models in quotes.
fn shown_name(path: &[Key]) -> String {
    let is_price = path.first().is_some_and(|table| table.get() == "prices");
    let parts = path.iter().enumerate().map(|(depth, part)| match depth {
        1 if is_price => format!("{:?}", part.get()),
        _ => part.get().to_owned(),
    });
    parts.collect::<Vec<_>>().join(".")
}

/// Returns the values that a text may mean, the likeliest first: one that is written in TOML, a list, or just text.
fn candidates(key: &FileKey, text: &str) -> Vec<Value> {
    let literal = text.trim().parse::<Value>().ok().filter(|value| {
        matches!(
            value,
            Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Array(_) | Value::InlineTable(_)
        )
    });
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    // Only these lists are separated by commas, in the environment, too.
    let is_list = keys().any(|fixed| super::keys::dotted_name(fixed.table, fixed.name) == key.name)
        || key.path.first().is_some_and(|table| table.get() == GRANTS_TABLE);
    let list = is_list.then(|| Value::Array(parts.collect::<Array>()));
    literal.into_iter().chain(list).chain([Value::from(text)]).collect()
}

/// The error for an edited text that cannot be loaded. If the old one could be, the edit is to blame, and lines of the file
/// say nothing.
fn key_error(problem: FileProblem, old: &str, path: &Path, env: Environment<'_>) -> Error {
    match check_text(old, path, env) {
        Ok(_) => Error::invalid(problem.what).hint(problem.hint),
        Err(before) => {
            let failure = before.into_error(path);
            let hint = failure.hint.clone().unwrap_or_default();
            failure.hint(format!("{hint}; to edit the file: chorusctl config edit"))
        }
    }
}

fn edit(path: &Path, key: &FileKey, change: impl Fn(&str) -> Result<String>) -> Result<Edited> {
    loop {
        let file = open(path)?;
        let new = change(file.text.as_deref().unwrap_or_default())?;
        if let Some(edited) = replace(path, &file, key, &new)? {
            return Ok(edited);
        }
    }
}

fn open(path: &Path) -> Result<LockedFile> {
    LockedFile::open(path).map_err(|e| file_error("read", path, &e))
}

/// Returns `None` if the file was created since it was opened.
fn replace(path: &Path, file: &LockedFile, key: &FileKey, new: &str) -> Result<Option<Edited>> {
    let old = file.text.as_deref();
    let changed = old.unwrap_or_default() != new;
    if changed && !file.replace(new).map_err(|e| file_error("write", path, &e))? {
        return Ok(None);
    }
    Ok(Some(Edited {
        file: path.to_owned(),
        key: key.name.clone(),
        created: old.is_none() && changed,
        changed,
        old: old.and_then(|old| text_edit::written_value(old, &key.path)),
    }))
}

fn file_error(verb: &str, path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::disk_full(),
        _ => Error::new(ErrorKind::StorageFailed, format!("cannot {verb} {}: {error}", path.display()))
            .hint("check the permissions of the file and of its directory; nothing was changed"),
    }
}
