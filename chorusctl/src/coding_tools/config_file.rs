//! A configuration file of a coding tool: read, shown as a change, and replaced as a whole.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use chorus_proto::error::exit;

use crate::app::App;
use crate::error::Error;
use crate::ui::{Style, confirm, sanitize};

/// Suffix of the copy of a file from before its first change.
const BACKUP_SUFFIX: &str = ".before-chorus";

/// Lines around a change that are shown.
const CONTEXT_LINES: usize = 2;

/// A configuration as it was read.
#[derive(Debug)]
pub struct ConfigFile {
    pub path: PathBuf,
    /// `None` if it does not exist.
    old: Option<String>,
}

impl ConfigFile {
    /// Reads the file. A link to a file in a repository of dotfiles stays one.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: PathBuf) -> Result<Self, Error> {
        let path = fs::canonicalize(&path).unwrap_or(path);
        let old = read_text(&path).map_err(|error| Error::for_file(&path.to_string_lossy(), &error))?;
        Ok(Self { path, old })
    }

    /// Returns the path for people.
    #[must_use]
    pub fn shown_path(&self) -> String {
        sanitize::one_line(&self.path.to_string_lossy())
    }

    /// Returns the text; `None` if the file does not exist.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.old.as_deref()
    }

    /// Shows the change, asks unless `yes`, and replaces the file, with a copy of what it was before the first change
    /// beside it.
    ///
    /// # Errors
    /// Not confirmed, the file was changed by another program, or cannot be written; then nothing was changed.
    pub fn replace(&self, new: &str, command: &str, yes: bool, app: &App) -> Result<(), Error> {
        let change = describe_change(self.old.as_deref().unwrap_or_default(), new);
        let shown = self.shown_path();
        if !app.stderr.is_json() && !app.stdout.is_quiet() {
            app.stderr.line(&format!("{shown}:"));
            for line in &change {
                let style = match line.as_bytes()[0] {
                    b'+' => Style::Good,
                    b'-' => Style::Bad,
                    _ => Style::Faint,
                };
                app.stderr.quoted_line(style, &format!("  {line}"));
            }
        }
        if !yes {
            let verb = if self.old.is_some() { "change" } else { "create" };
            confirm::ask(command, &format!("{verb} {shown}?"))?;
        }
        let is_replaced = self.write(new).map_err(|error| Error::for_file(&shown, &error))?;
        if !is_replaced {
            return Err(Error::new(
                exit::CONFLICT,
                format!("{shown} was changed by another program; nothing was changed"),
            )
            .with_hint("run the command again"));
        }
        Ok(())
    }

    /// Returns false if the file has changed since it was read.
    fn write(&self, new: &str) -> io::Result<bool> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let permissions = match fs::metadata(&self.path) {
            Ok(metadata) => metadata.permissions(),
            Err(_) => Permissions::from_mode(0o600),
        };
        let draft = |text: &str| {
            let mut draft = tempfile::Builder::new().prefix(".chorus-").tempfile_in(folder)?;
            draft.write_all(text.as_bytes())?;
            draft.as_file().set_permissions(permissions.clone())?;
            draft.as_file().sync_all()?;
            io::Result::Ok(draft)
        };
        let new = draft(new)?;
        if let Some(old) = &self.old {
            let mut backup = self.path.clone().into_os_string();
            backup.push(BACKUP_SUFFIX);
            // The first copy is what the user had before any change.
            match draft(old)?.persist_noclobber(backup) {
                Ok(_) => {}
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.error),
            }
        }
        if read_text(&self.path)? != self.old {
            return Ok(false);
        }
        new.persist(&self.path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()?;
        Ok(true)
    }
}

/// Returns the directory of the user.
///
/// # Errors
/// It is unknown.
pub fn user_home() -> Result<PathBuf, Error> {
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    home.ok_or_else(|| Error::usage("the home directory is unknown").with_hint("set HOME"))
}

/// Reads a file; `None` if it does not exist.
fn read_text(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the lines that are removed and added, and those around them.
fn describe_change(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let tail = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let mark = |mark: &'static str| move |line: &&str| format!("{mark} {line}");
    let before = old[start.saturating_sub(CONTEXT_LINES)..start].iter().map(mark(" "));
    let removed = old[start..old_end].iter().map(mark("-"));
    let added = new[start..new_end].iter().map(mark("+"));
    let after = old[old_end..(old_end + CONTEXT_LINES).min(old.len())].iter().map(mark(" "));
    before.chain(removed).chain(added).chain(after).collect()
}

#[cfg(test)]
mod tests {
    use super::describe_change;

    #[test]
    fn a_change_is_shown_with_the_lines_around_it() {
        let shown = |old, new| describe_change(old, new).join("\n");
        assert_eq!(shown("a\nb\nc\nd\ne\n", "a\nb\nc\nx\ny\nd\ne\n"), "  b\n  c\n+ x\n+ y\n  d\n  e");
        assert_eq!(shown("a\n", "a,\nb\n"), "- a\n+ a,\n+ b");
        assert_eq!(shown("", "{}\n"), "+ {}");
        assert_eq!(shown("a\na\n", "a\n"), "  a\n- a");
    }
}
