//! Appends a provider to config.toml. `chorusd` checks the result before the file is replaced.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use chorus_proto::error::exit;

use crate::connect;
use crate::error::Error;

/// Provider that exists without configuration as long as no other is configured.
const IMPLICIT_PROVIDER: &str = "anthropic";

/// Symbolic links that are followed one after the other, as many as the kernel follows.
const MAX_LINKS: usize = 40;

/// Attempts to write the file while others change it.
const MAX_TRIES: usize = 5;

/// A table `[providers.NAME]`.
#[derive(Debug)]
pub(super) struct ProviderTable {
    pub name: String,
    /// Keys, each with its value as TOML.
    pub keys: Vec<(&'static str, String)>,
}

impl ProviderTable {
    fn to_toml(&self) -> String {
        let keys: String = self.keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        format!("[providers.{}]\n{keys}", self.name)
    }
}

/// The result of [`append_provider`].
#[derive(Debug)]
pub(super) struct AppendedProvider {
    pub file: PathBuf,
    pub created: bool,
    /// A provider that would have disappeared because it was not configured, and was added too.
    pub kept: Option<&'static str>,
}

/// Appends `table` to the configuration file, which it creates if necessary. The rest of the file stays as it is. If another
/// program changes the file at the same time, starts again with what it wrote.
///
/// # Errors
/// The file is invalid, has the provider already, would be invalid with it, or changes all the time; then nothing was
/// changed.
pub(super) fn append_provider(table: &ProviderTable, socket: Option<&Path>) -> Result<AppendedProvider, Error> {
    for _ in 0..MAX_TRIES {
        if let Some(appended) = try_append(table, socket)? {
            return Ok(appended);
        }
    }
    Err(Error::new(exit::CONFLICT, "config.toml was changed by another program; nothing was added")
        .with_hint("run the command again"))
}

/// Appends `table` once. Returns `None` if the file was changed since it was read.
fn try_append(table: &ProviderTable, socket: Option<&Path>) -> Result<Option<AppendedProvider>, Error> {
    let found = connect::read_config(socket, None).map_err(|error| error.with_detail("nothing was changed"))?;
    let file = follow_links(found.config);
    let for_file = |error: &io::Error| Error::for_file(&file.display().to_string(), error);
    let old = read_text(&file).map_err(|error| for_file(&error))?;
    let text = old.clone().unwrap_or_default();
    if found.providers.contains(&table.name) && (table.name != IMPLICIT_PROVIDER || has_table(&text, &table.name)) {
        return Err(Error::new(exit::CONFLICT, format!("provider {} exists already", table.name)).with_hint(format!(
            "edit [providers.{}] in {}, or use another name",
            table.name,
            file.display()
        )));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| for_file(&error))?;
    let permissions = match fs::metadata(&file) {
        Ok(metadata) => {
            let name = file.display();
            // A replacement would get around it.
            if metadata.permissions().readonly() || OpenOptions::new().append(true).open(&file).is_err() {
                return Err(Error::refused(format!("{name} is read-only; nothing was changed"))
                    .with_hint(format!("make it writable: chmod u+w {name}")));
            }
            metadata.permissions()
        }
        Err(_) => Permissions::from_mode(0o600),
    };
    let mut text = with_table(&text, &table.to_toml());
    let mut draft = write_draft(folder, &text).map_err(|error| for_file(&error))?;
    let checked = check_draft(&draft, &file, socket)?;
    let kept = (found.providers.iter().any(|name| name == IMPLICIT_PROVIDER)
        && !checked.iter().any(|name| name == IMPLICIT_PROVIDER))
    .then_some(IMPLICIT_PROVIDER);
    if let Some(name) = kept {
        text = with_table(&text, &format!("[providers.{name}]\n"));
        draft = write_draft(folder, &text).map_err(|error| for_file(&error))?;
        check_draft(&draft, &file, socket)?;
    }
    draft.as_file().set_permissions(permissions).map_err(|error| for_file(&error))?;
    draft.as_file().sync_all().map_err(|error| for_file(&error))?;
    if !replace_if_unchanged(draft, &file, old.as_deref()).map_err(|error| for_file(&error))? {
        return Ok(None);
    }
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| for_file(&error))?;
    Ok(Some(AppendedProvider { file, created: old.is_none(), kept }))
}

/// Reads a file; `None` if it does not exist.
fn read_text(file: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces `file` by the draft, unless its text is no longer `old`, because somebody edited it while the draft was checked.
/// Returns whether it was replaced.
fn replace_if_unchanged(draft: tempfile::NamedTempFile, file: &Path, old: Option<&str>) -> io::Result<bool> {
    let Some(old) = old else {
        return match draft.persist_noclobber(file) {
            Ok(_) => Ok(true),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.error),
        };
    };
    // Another command waits for the lock, and then finds that the path has another text.
    let locked = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    locked.lock()?;
    if read_text(file)?.as_deref() != Some(old) {
        return Ok(false);
    }
    draft.persist(file).map_err(|error| error.error)?;
    Ok(true)
}

/// Returns the file that a path means if it is a symbolic link, so that the link stays one; the file need not exist.
fn follow_links(path: PathBuf) -> PathBuf {
    if let Ok(file) = fs::canonicalize(&path) {
        return file;
    }
    let mut path = path;
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// Returns true if the file configures the provider, in the usual spelling.
fn has_table(text: &str, name: &str) -> bool {
    let header = format!("[providers.{name}]");
    text.lines().any(|line| line.trim_start().starts_with(&header))
}

/// Appends a table after an empty line.
fn with_table(text: &str, table: &str) -> String {
    let gap = match text {
        "" => "",
        _ if text.ends_with("\n\n") => "",
        _ if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{gap}{table}")
}

/// Writes a private file beside the configuration, where relative paths in it mean the same.
fn write_draft(folder: &Path, text: &str) -> io::Result<tempfile::NamedTempFile> {
    let mut draft = tempfile::Builder::new().prefix("config.toml.").tempfile_in(folder)?;
    draft.write_all(text.as_bytes())?;
    Ok(draft)
}

/// Checks the draft and returns its providers. An error names the file that it is for.
fn check_draft(draft: &tempfile::NamedTempFile, file: &Path, socket: Option<&Path>) -> Result<Vec<String>, Error> {
    match connect::read_config(socket, Some(draft.path())) {
        Ok(checked) => Ok(checked.providers),
        Err(error) => {
            let what = error.message().replace(&*draft.path().to_string_lossy(), &file.to_string_lossy());
            Err(error.with_message(what).with_detail("nothing was changed"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_edited_is_not_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("config.toml");
        for (old, now, replaced) in [
            (None, None, true),
            (None, Some("a = 1\n"), false),
            (Some("a = 1\n"), Some("a = 1\n"), true),
            (Some("a = 1\n"), Some("a = 2\n"), false),
            (Some("a = 1\n"), None, false),
        ] {
            let _ = fs::remove_file(&file);
            if let Some(now) = now {
                fs::write(&file, now).expect("written");
            }
            let draft = write_draft(dir.path(), "new\n").expect("a draft");
            assert_eq!(replace_if_unchanged(draft, &file, old).expect("no failure"), replaced, "{old:?} {now:?}");
            let text = read_text(&file).expect("readable");
            assert_eq!(text.as_deref(), if replaced { Some("new\n") } else { now });
        }
        assert!(fs::read_dir(dir.path()).expect("the directory").count() <= 1, "a draft was left behind");
    }

    #[test]
    fn a_table_follows_an_empty_line() {
        let table = "[providers.a]\n";
        for (text, whole) in [
            ("", "[providers.a]\n"),
            ("x = 1", "x = 1\n\n[providers.a]\n"),
            ("x = 1\n", "x = 1\n\n[providers.a]\n"),
            ("x = 1\n\n", "x = 1\n\n[providers.a]\n"),
        ] {
            assert_eq!(with_table(text, table), whole);
        }
    }
}
