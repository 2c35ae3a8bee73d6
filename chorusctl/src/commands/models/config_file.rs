//! Appends a provider to config.toml. `chorusd` checks the result before the file is replaced.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use chorus_proto::error::exit;

use crate::connect;
use crate::error::Error;

/// Provider that exists without configuration as long as no other is configured.
const IMPLICIT_PROVIDER: &str = "anthropic";

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

/// Appends `table` to the configuration file, which it creates if necessary. The rest of the file stays as it is.
///
/// # Errors
/// The file is invalid, has the provider already or would be invalid with it; then nothing was changed.
pub(super) fn append_provider(table: &ProviderTable, socket: Option<&Path>) -> Result<AppendedProvider, Error> {
    let found = connect::read_config(socket, None).map_err(|error| error.with_detail("nothing was changed"))?;
    // A link is followed, so that it stays a link.
    let file = fs::canonicalize(&found.config).unwrap_or_else(|_| found.config.clone());
    let for_file = |error: &io::Error| Error::for_file(&file.display().to_string(), error);
    let (old, created) = match fs::read_to_string(&file) {
        Ok(text) => (text, false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (String::new(), true),
        Err(error) => return Err(for_file(&error)),
    };
    if found.providers.contains(&table.name) && (table.name != IMPLICIT_PROVIDER || has_table(&old, &table.name)) {
        return Err(Error::new(exit::CONFLICT, format!("provider {} exists already", table.name)).with_hint(format!(
            "edit [providers.{}] in {}, or use another name",
            table.name,
            file.display()
        )));
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| for_file(&error))?;
    let permissions = match fs::metadata(&file) {
        Ok(metadata) => metadata.permissions(),
        Err(_) => Permissions::from_mode(0o600),
    };
    let mut text = with_table(&old, &table.to_toml());
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
    draft.persist(&file).map_err(|error| for_file(&error.error))?;
    Ok(AppendedProvider { file, created, kept })
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
