//! Changes the table `[store]` in the text of config.toml. Everything else stays, comments, too.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::sync_dir;
use chorus_config::{KeySource, StoreKind};
use chorus_proto::ErrorKind;

use super::store_copy::StoreUrl;

/// The keys that say where the URL is.
const URL_KEYS: [&str; 3] = ["url_file", "url_env", "credential"];

/// The new content of the table.
#[derive(Debug)]
pub(super) struct StoreSetting {
    pub(super) kind: StoreKind,
    /// `None`: as it is.
    pub(super) url: Option<StoreUrl>,
}

/// The new text of a configuration, which was parsed.
#[derive(Debug)]
pub(super) struct NewConfig {
    path: PathBuf,
    text: String,
}

/// Returns the configuration `path` with another store.
///
/// # Errors
/// `invalid_config` if the text has a form that is not understood here, and says what to write.
pub(super) fn change_store(path: &Path, setting: &StoreSetting) -> Result<NewConfig> {
    // If it is a link, the file behind it is changed.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let before = match fs::read_to_string(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.map_err(|e| Error::io(format_args!("cannot read {}", path.display()), &e))?,
    };
    let lines = lines_of(setting);
    let text = edit(&before, &lines, setting.url.is_some());
    let new = NewConfig { path, text };
    if new.is_as_wanted(setting) {
        return Ok(new);
    }
    let lines: Vec<String> = lines.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let what = format!("cannot change the table [store] in {}", new.path.display());
    Err(Error::new(ErrorKind::InvalidConfig, what)
        .hint(format!("write it as a table of separate lines, such as: [store] {}", lines.join(", "))))
}

/// The keys and values to write.
fn lines_of(setting: &StoreSetting) -> Vec<(&'static str, String)> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let kind = match setting.kind {
        StoreKind::Sqlite => "sqlite",
        StoreKind::Postgres => "postgres",
    };
    let url = setting.url.as_ref().map(|url| match url {
        StoreUrl::File(path) => ("url_file", quoted(&path.to_string_lossy())),
        StoreUrl::Env(variable) => ("url_env", quoted(variable)),
    });
    [("kind", quoted(kind))].into_iter().chain(url).collect()
}

/// Replaces lines in the table, or adds them behind its head. `with_url`: lines with another URL are left out.
fn edit(before: &str, lines: &[(&'static str, String)], with_url: bool) -> String {
    let mut text = String::with_capacity(before.len() + 100);
    let mut is_in_table = false;
    let mut was_found = false;
    for line in before.split_inclusive('\n') {
        let code = line.trim();
        if code.starts_with('[') {
            is_in_table = code.split('#').next().is_some_and(|head| head.replace([' ', '\t'], "").trim() == "[store]");
            text.push_str(line);
            if is_in_table {
                was_found = true;
                end_line(&mut text);
                lines.iter().for_each(|(key, value)| text.push_str(&format!("{key} = {value}\n")));
            }
            continue;
        }
        let key = code.split('=').next().unwrap_or_default().trim();
        let is_replaced = key == "kind" || (with_url && URL_KEYS.contains(&key));
        if is_in_table && is_replaced {
            // A comment behind the value stays.
            if let Some((_, comment)) = code.rsplit_once(" #").filter(|(_, comment)| !comment.contains('"')) {
                text.push_str(&format!("#{comment}\n"));
            }
        } else {
            text.push_str(line);
        }
    }
    if !was_found {
        end_line(&mut text);
        text.push_str(if text.is_empty() { "[store]\n" } else { "\n[store]\n" });
        lines.iter().for_each(|(key, value)| text.push_str(&format!("{key} = {value}\n")));
    }
    text
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

impl NewConfig {
    /// Returns whether the text says what it should.
    fn is_as_wanted(&self, setting: &StoreSetting) -> bool {
        let Ok(dir) = DraftFile::write(&self.path, &self.text) else { return false };
        let Ok(config) = chorus_config::load(&dir.0, |_| None) else { return false };
        let url = match (&setting.url, &config.store.url) {
            (Some(StoreUrl::File(path)), KeySource::File(found)) => path == found,
            (Some(StoreUrl::Env(name)), KeySource::Env { variable, .. }) => name == variable,
            (found, _) => found.is_none(),
        };
        config.store.kind == setting.kind && url
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// Fails if it cannot be written; it is unchanged then.
    pub(super) fn write(self) -> Result<()> {
        let failed = |e: &io::Error| Error::io(format_args!("cannot write {}", self.path.display()), e);
        let draft = DraftFile::write(&self.path, &self.text).map_err(|e| failed(&e))?;
        fs::rename(&draft.0, &self.path).map_err(|e| failed(&e))?;
        sync_dir(self.path.parent().unwrap_or(Path::new("."))).map_err(|e| failed(&e))
    }
}

/// A file next to the configuration, which is deleted with this value unless it was renamed.
#[derive(Debug)]
struct DraftFile(PathBuf);

impl DraftFile {
    /// Writes a file with the mode of the configuration, and syncs it.
    fn write(config: &Path, text: &str) -> io::Result<Self> {
        let mode = config.metadata().map_or(0o600, |metadata| metadata.permissions().mode() & 0o777);
        let path = config.with_extension("toml.new");
        if let Some(dir) = config.parent() {
            fs::create_dir_all(dir)?;
        }
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&path)?;
        let draft = Self(path);
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(draft)
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        // After a rename it is gone.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(before: &str, kind: StoreKind, url: Option<StoreUrl>) -> Result<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, before).unwrap();
        change_store(&path, &StoreSetting { kind, url })?.write()?;
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        Ok(fs::read_to_string(&path).unwrap())
    }

    fn file() -> Option<StoreUrl> {
        Some(StoreUrl::File("/etc/chorus/url".into()))
    }

    #[test]
    fn a_table_is_added_or_changed_and_the_rest_stays() {
        let added = "[store]\nkind = \"postgres\"\nurl_file = \"/etc/chorus/url\"\n";
        assert_eq!(changed("", StoreKind::Postgres, file()).unwrap(), added);
        let other = "# mine\nlog_level = \"debug\" # loud\n\n[search]\nindex = false";
        assert_eq!(changed(other, StoreKind::Postgres, file()).unwrap(), format!("{other}\n\n{added}"));
        let before = "[store] # all\n# the server\nkind = \"sqlite\" # for now\nurl_env = \"URL\"\n[store.sessions]\nkind = \"dir\"\npath = \"/b\"\n";
        let sessions = "[store.sessions]\nkind = \"dir\"\npath = \"/b\"\n";
        assert_eq!(
            changed(before, StoreKind::Postgres, file()).unwrap(),
            format!(
                "[store] # all\nkind = \"postgres\"\nurl_file = \"/etc/chorus/url\"\n# the server\n# for now\n{sessions}"
            )
        );
        let only_sessions = changed(sessions, StoreKind::Postgres, Some(StoreUrl::Env("URL".into()))).unwrap();
        assert_eq!(only_sessions, format!("{sessions}\n[store]\nkind = \"postgres\"\nurl_env = \"URL\"\n"));
        let back = changed(&only_sessions, StoreKind::Sqlite, None).unwrap();
        assert_eq!(back, only_sessions.replace("postgres", "sqlite"));
    }

    #[test]
    fn a_form_that_is_not_understood_is_refused_and_the_file_is_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        for before in ["store = { kind = \"sqlite\" }\n", "store.kind = \"sqlite\"\n"] {
            fs::write(&path, before).unwrap();
            let failure = change_store(&path, &StoreSetting { kind: StoreKind::Postgres, url: file() }).unwrap_err();
            assert!(failure.hint.unwrap().contains("[store] kind = \"postgres\""), "{before}");
            assert_eq!(fs::read_to_string(&path).unwrap(), before);
        }
    }
}
