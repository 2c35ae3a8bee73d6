//! Edits config.toml: one key, or the whole text. A text that could not be loaded never replaces the file.

mod locked_file;
mod text_edit;
#[cfg(test)]
mod text_edit_properties;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use toml_edit::{Array, Document, Key, Value};

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
    loop {
        if let Some(edited) = prepare_set(path, key, value, env)?.commit()? {
            return Ok(edited);
        }
    }
}

/// Checks what [`set_key`] would do, and keeps the file locked until the edit is committed or dropped.
///
/// # Errors
/// As [`set_key`].
pub fn prepare_set(path: &Path, key: &str, value: &str, env: Environment<'_>) -> Result<PreparedEdit> {
    let key = FileKey::parse(key)?;
    let is_table = keys().any(|fixed| fixed.table == key.name) || NAMED_TABLES.contains(&&*key.name);
    if is_table && !value.trim_start().starts_with('{') {
        return Err(Error::invalid(format!("`{}` is a table: set one of its keys", key.name)).hint(KEYS_HINT));
    }
    let change = |key: &FileKey, old: &str| {
        let mut problem = None;
        for value in candidates(key, value) {
            let text = text_edit::set_value(old, &key.path, &value)
                .map_err(|what| Error::invalid(format!("`{}` {what}", key.name)).hint(KEYS_HINT))?;
            match check_text(&text, path, env) {
                Ok(_) => return Ok(text),
                Err(found) => problem = Some(found),
            }
        }
        Err(problem.map_or_else(|| Error::internal("no value"), |problem| key_error(problem, old, path, env)))
    };
    prepare(path, key, env, change)
}

/// Removes a key, or a table with its keys, from the file.
///
/// # Errors
/// As [`set_key`], but not if the file does not have the key.
pub fn unset_key(path: &Path, key: &str, env: Environment<'_>) -> Result<Edited> {
    loop {
        if let Some(edited) = prepare_unset(path, key, env)?.commit()? {
            return Ok(edited);
        }
    }
}

/// Checks what [`unset_key`] would do, and keeps the file locked until the edit is committed or dropped.
///
/// # Errors
/// As [`unset_key`].
pub fn prepare_unset(path: &Path, key: &str, env: Environment<'_>) -> Result<PreparedEdit> {
    let change = |key: &FileKey, old: &str| {
        let Some(text) = text_edit::unset_value(old, &key.path) else {
            return check_key(&key.name).map(|()| old.to_owned());
        };
        match check_text(&text, path, env) {
            Ok(_) => Ok(text),
            Err(problem) => Err(key_error(problem, old, path, env)),
        }
    };
    prepare(path, FileKey::parse(key)?, env, change)
}

/// Replaces the whole text of the file. `old` is the text from which `new` was made; `None` if there was no file.
///
/// # Errors
/// `conflict` if the file has another text now, `invalid_config` if `new` cannot be loaded. Nothing is changed then.
pub fn replace_text(path: &Path, old: Option<&str>, new: &str, env: Environment<'_>) -> Result<Edited> {
    let whole = FileKey { name: String::new(), path: Vec::new() };
    check_text(new, path, env).map_err(|problem| problem.into_error(path))?;
    let file = open(path)?;
    let is_same = file.text.as_deref() == old;
    let edit = PreparedEdit { path: path.to_owned(), key: whole, file, new: new.to_owned() };
    let replaced = if is_same { edit.commit()? } else { None };
    replaced.ok_or_else(|| {
        Error::new(ErrorKind::Conflict, format!("{} was changed by somebody else", path.display()))
            .hint("edit it again: chorusctl config edit")
    })
}

/// An edit that was checked. Until it is committed, the file has its old text, and no other command edits it.
#[derive(Debug)]
pub struct PreparedEdit {
    path: PathBuf,
    key: FileKey,
    file: LockedFile,
    new: String,
}

impl PreparedEdit {
    /// Returns the key with its table.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key.name
    }

    /// Returns true if the text will be another one.
    #[must_use]
    pub fn changes_text(&self) -> bool {
        self.file.text.as_deref().unwrap_or_default() != self.new
    }

    /// Returns the value that the file has now, as it is written.
    #[must_use]
    pub fn old_value(&self) -> Option<String> {
        text_edit::written_value(self.file.text.as_deref()?, &self.key.path)
    }

    /// Replaces the file. Returns `None` if the file was created since it was opened; then nothing was changed.
    ///
    /// # Errors
    /// `storage_failed`, `disk_full`.
    pub fn commit(self) -> Result<Option<Edited>> {
        let (changed, old) = (self.changes_text(), self.old_value());
        if changed && !self.file.replace(&self.new).map_err(|e| file_error("write", &self.path, &e))? {
            return Ok(None);
        }
        let created = self.file.text.is_none() && changed;
        Ok(Some(Edited { file: self.path, key: self.key.name, created, changed, old }))
    }
}

/// A key of the file.
#[derive(Debug)]
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
        Err(before) => broken_file_error(before, path),
    }
}

/// The error for a file that cannot be edited key by key.
fn broken_file_error(problem: FileProblem, path: &Path) -> Error {
    let failure = problem.into_error(path);
    let hint = failure.hint.clone().unwrap_or_default();
    failure.hint(format!("{hint}; to edit the file: chorusctl config edit"))
}

fn prepare(
    path: &Path,
    key: FileKey,
    env: Environment<'_>,
    change: impl Fn(&FileKey, &str) -> Result<String>,
) -> Result<PreparedEdit> {
    let file = open(path)?;
    let old = file.text.as_deref().unwrap_or_default();
    if Document::parse(old).is_err()
        && let Err(problem) = check_text(old, path, env)
    {
        return Err(broken_file_error(problem, path));
    }
    let new = change(&key, old)?;
    let edit = PreparedEdit { path: path.to_owned(), key, file, new };
    if edit.changes_text() {
        edit.file.ensure_writable().map_err(|e| file_error("write", path, &e))?;
    }
    Ok(edit)
}

fn open(path: &Path) -> Result<LockedFile> {
    LockedFile::open(path).map_err(|e| file_error("read", path, &e))
}

fn file_error(verb: &str, path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::disk_full(),
        io::ErrorKind::ReadOnlyFilesystem => Error::new(ErrorKind::Denied, format!("{} is read-only", path.display()))
            .hint(format!("make it writable: chmod u+w {}; nothing was changed", path.display())),
        _ => Error::new(ErrorKind::StorageFailed, format!("cannot {verb} {}: {error}", path.display()))
            .hint("check the permissions of the file and of its directory; nothing was changed"),
    }
}
