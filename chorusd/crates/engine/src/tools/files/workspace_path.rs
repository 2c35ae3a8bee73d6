//! Normalises a path given by a model to the one that is judged and opened.

use std::fmt;
use std::path::Path;

/// Limit on the length of a path, in bytes.
const MAX_PATH_LEN: usize = 4096;

/// Limit on nested folders; each is held open during a walk.
const MAX_DEPTH: usize = 64;

/// A path in a workspace: components without `.`, `..` and git's directory. Without components it is the workspace
/// itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspacePath {
    components: Vec<String>,
    /// True if it was given with a slash at its end.
    trailing_slash: bool,
}

impl WorkspacePath {
    /// Parses a path and removes `.`, `..` and repeated slashes. File tools follow no symbolic links, so `..` can be
    /// resolved textually. An absolute path below `workspace` is made relative.
    ///
    /// # Errors
    /// The reason why it is not a path in the workspace, for the model.
    pub fn parse(given: &str, workspace: &Path) -> Result<Self, String> {
        if given.is_empty() {
            return Err("the path is empty; use `.` for the workspace itself".into());
        }
        if given.len() > MAX_PATH_LEN {
            return Err(format!("the path has {} bytes (at most {MAX_PATH_LEN})", given.len()));
        }
        if given.chars().any(char::is_control) {
            return Err(format!("the path {given:?} contains control characters"));
        }
        if given == "~" || given.starts_with("~/") {
            return Err(format!("{given} is outside the workspace: paths are relative to it, and `~` is not expanded"));
        }
        let inside = match given.starts_with('/') {
            false => given.to_owned(),
            true => strip_workspace(given, workspace)?,
        };
        let mut parts: Vec<String> = Vec::new();
        for part in inside.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.pop().is_none() => {
                    return Err(format!("{given} is outside the workspace, which file tools cannot access"));
                }
                ".." => {}
                _ if is_git_dir(part) => {
                    return Err(format!(
                        "{given} is inside git's own directory, which file tools cannot access; use the git tools"
                    ));
                }
                _ => parts.push(part.to_owned()),
            }
        }
        if parts.len() > MAX_DEPTH {
            return Err(format!("the path has {} nested folders (at most {MAX_DEPTH})", parts.len()));
        }
        Ok(Self { components: parts, trailing_slash: given.ends_with('/') })
    }

    /// Returns the components of the path.
    #[must_use]
    pub fn components(&self) -> &[String] {
        &self.components
    }

    /// Returns the folders and the name of a file.
    ///
    /// # Errors
    /// The path is that of a folder.
    pub fn split_file(&self) -> Result<(&[String], &str), String> {
        match self.components.split_last() {
            Some((name, folder)) if !self.trailing_slash => Ok((folder, name)),
            _ => Err(format!("{self} is a folder; pass a file")),
        }
    }
}

impl fmt::Display for WorkspacePath {
    /// Writes the path as it appears in actions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.components.is_empty() { f.write_str(".") } else { f.write_str(&self.components.join("/")) }
    }
}

/// Strips the workspace's path off an absolute path.
fn strip_workspace(given: &str, workspace: &Path) -> Result<String, String> {
    let left = |workspace: &Path| Path::new(given).strip_prefix(workspace).ok().map(Path::to_path_buf);
    // Commands see the workspace under its real path.
    let left = left(workspace).or_else(|| left(&workspace.canonicalize().ok()?));
    left.and_then(|left| left.to_str().map(str::to_owned)).ok_or_else(|| {
        let workspace = workspace.display();
        format!("{given} is outside the workspace ({workspace}), which file tools cannot access")
    })
}

/// Returns true if git treats a component as `.git` on any file system: in upper or lower case, with trailing dots and
/// blanks, with invisible characters, as a short name of Windows, or with an NTFS stream.
fn is_git_dir(part: &str) -> bool {
    part.split('\\').any(|part| {
        let name = part.split(':').next().unwrap_or_default();
        let seen: String = name.chars().filter(|c| !is_ignored_by_hfs(*c)).collect();
        let name = seen.trim_end_matches(['.', ' ']).to_ascii_lowercase();
        let short = name.strip_prefix("git~").or_else(|| name.strip_prefix("gi7eba~"));
        name == ".git" || short.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// Returns true for characters that HFS+ ignores when it compares names.
fn is_ignored_by_hfs(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &str) -> Result<String, String> {
        WorkspacePath::parse(given, Path::new("/home/agents/a/workspace")).map(|place| place.to_string())
    }

    #[test]
    fn paths_are_cleaned_into_what_is_opened() {
        for (given, clean) in [
            ("a", "a"),
            ("./a", "a"),
            ("a//b/./c", "a/b/c"),
            ("a/../b", "b"),
            ("a/b/../../c/", "c"),
            (".", "."),
            ("a/..", "."),
            ("/home/agents/a/workspace", "."),
            ("/home/agents/a/workspace/x/y", "x/y"),
            ("/home/agents//a/./workspace/x", "x"),
            ("a b/ü", "a b/ü"),
            (".gitignore", ".gitignore"),
            (".github/x.yml", ".github/x.yml"),
            ("git~x", "git~x"),
            ("x~", "x~"),
            ("...", "..."),
        ] {
            assert_eq!(read(given).as_deref(), Ok(clean), "{given}");
        }
    }

    #[test]
    fn what_leads_out_or_to_git_is_refused_with_the_reason() {
        for (given, why) in [
            ("", "empty"),
            ("..", "is outside the workspace"),
            ("a/../../b", "is outside the workspace"),
            ("../workspace/a", "is outside the workspace"),
            ("/etc/passwd", "outside the workspace (/home/agents/a/workspace)"),
            ("/home/agents/a/workspace2/x", "outside"),
            ("/home/agents/a/workspace/../agent.json", "is outside the workspace"),
            ("/", "outside"),
            ("~", "not expanded"),
            ("~/x", "not expanded"),
            ("a\0b", "control"),
            ("a\nb", "control"),
            (".git", "git"),
            ("sub/.git/hooks/x", "git"),
            (".GIT/config", "git"),
            (".git./config", "git"),
            (".git . /config", "git"),
            (".g\u{200c}it/config", "git"),
            (".git::$INDEX_ALLOCATION/config", "git"),
            ("GIT~1/config", "git"),
            ("a\\.git\\config", "git"),
        ] {
            let wrong = read(given).expect_err(given);
            assert!(wrong.contains(why), "{given}: {wrong}");
        }
        assert!(read(&"x/".repeat(3000)).is_err());
        assert!(WorkspacePath::parse("src/", Path::new("/w")).unwrap().split_file().is_err());
        assert!(WorkspacePath::parse(".", Path::new("/w")).unwrap().split_file().is_err());
    }
}
