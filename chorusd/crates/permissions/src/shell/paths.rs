//! Resolves the paths of files that a command reads and writes to the names that actions use.

use std::collections::HashSet;
use std::path::PathBuf;

use super::{command_runners, git_dir};

/// The absolute paths of a workspace, before and after resolving links; empty if they are unknown.
#[derive(Debug, Clone, Default)]
pub struct WorkspacePaths(Vec<Vec<String>>);

impl WorkspacePaths {
    /// Takes absolute paths. Paths that are not UTF-8 are dropped, because no command can name them.
    #[must_use]
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let paths = paths.into_iter().filter_map(|path| path.into_os_string().into_string().ok());
        Self(paths.map(|path| components(&path).map(str::to_owned).collect()).collect())
    }
}

/// Limits on the directories that are tracked: their number, and the sum of their lengths in bytes.
const MAX_DIRECTORIES: usize = 64;
const MAX_DIRECTORIES_LEN: usize = 4 << 10;

/// The directories that a relative path of a command may start from.
#[derive(Debug, Clone)]
pub(super) struct PossibleDirectories<'a> {
    workspace: &'a WorkspacePaths,
    /// Directories other than the workspace that the command may be in. Entries are never removed, because `cd` may
    /// fail, and `popd` and `cd -` go back.
    entered: Vec<String>,
    /// True after the command changed the directory.
    changed: bool,
    /// True if the command may be in a directory that is not in `entered`.
    incomplete: bool,
    /// True if neither the directory nor the beginning of the paths is known.
    is_unknown: bool,
}

impl<'a> PossibleDirectories<'a> {
    /// The workspace, where a command starts.
    #[must_use]
    pub(super) fn in_workspace(workspace: &'a WorkspacePaths) -> Self {
        Self { workspace, entered: Vec::new(), changed: false, incomplete: false, is_unknown: false }
    }

    /// Any directory, for paths that may begin with an expansion.
    #[must_use]
    pub(super) fn unknown(workspace: &'a WorkspacePaths) -> Self {
        Self { is_unknown: true, ..Self::in_workspace(workspace) }
    }

    /// Updates the directories after a command with these words ran, or tried to.
    pub(super) fn track_directory_change(&mut self, words: &[&str]) {
        if !command_runners::changes_directory(words) {
            return;
        }
        self.changed = true;
        let mut given = words.iter().skip(1).skip_while(|word| word.starts_with('-') && !matches!(**word, "-" | "--"));
        let to = given.next().and_then(|word| if *word == "--" { given.next() } else { Some(word) });
        match (words.first(), to) {
            // They go back to a directory that the command was in before.
            (Some(&"popd"), _) | (Some(&"pushd"), None) => {}
            // The home directory, or the value that `OLDPWD` had before the command.
            (_, None | Some(&"-")) => self.incomplete = true,
            (_, Some(to)) => self.add_directory(to),
        }
    }

    /// Adds `to`, relative to the workspace and to each directory that the command may be in.
    fn add_directory(&mut self, to: &str) {
        let absolute = to.starts_with('/');
        let below = self.entered.iter().filter(|_| !absolute).map(|from| [from, "/", to].concat());
        for spelled in std::iter::once(to.to_owned()).chain(below).collect::<Vec<_>>() {
            let absolute = spelled.starts_with('/');
            let path =
                [if absolute { "/" } else { "" }, &resolve_parents(components(&spelled), absolute).join("/")].concat();
            if path.is_empty() || self.entered.contains(&path) {
                continue;
            }
            let length: usize = self.entered.iter().map(String::len).sum();
            if self.entered.len() == MAX_DIRECTORIES || length + path.len() > MAX_DIRECTORIES_LEN {
                return self.mark_incomplete();
            }
            self.entered.push(path);
        }
    }

    /// Stops listing the directories that the command may be in.
    pub(super) fn mark_incomplete(&mut self) {
        self.incomplete = true;
        self.entered.clear();
    }

    /// Returns the reason to ask if a file at `path` may have a name that [`PossibleDirectories::alternative_paths`]
    /// does not list.
    #[must_use]
    pub(super) fn ask_reason(&self, path: &str) -> Option<&'static str> {
        let known = !self.incomplete || strip_proc_links(path).0;
        (!known).then_some("it reads a file after changing to an unknown directory")
    }

    /// Returns the names by which rules may know the file at `path`: as spelled, without `.` and repeated slashes, with
    /// each `..` resolved textually, and relative to the workspace where an absolute path or a `..` leads into it.
    /// Because a component before `..` may be a link, none of these names replaces another.
    #[must_use]
    pub(super) fn alternative_paths(&self, path: &str) -> Vec<String> {
        let mut names = vec![path.to_owned(), clean_path(path).0];
        let (absolute, given) = strip_proc_links(path);
        self.push_resolved(absolute, &given, &mut names);
        for from in self.entered.iter().filter(|_| !absolute) {
            let whole: Vec<&str> = components(from).chain(given.iter().copied()).collect();
            self.push_resolved(from.starts_with('/'), &whole, &mut names);
        }
        if self.is_unknown {
            // The path may follow an expansion such as `$PWD/x` or `~+/x`, which is normalised to nothing.
            let bare = given.strip_prefix(&["~+"]).unwrap_or(given.as_slice());
            self.push_resolved(false, bare, &mut names);
            names.push(strip_leading_parents(bare));
        } else if self.changed && !absolute {
            names.push(strip_leading_parents(&given));
        }
        let mut seen = HashSet::new();
        names.retain(|name| !name.is_empty() && seen.insert(name.clone()));
        names
    }

    /// Adds the names of the file at `given`, relative to the root or to the workspace.
    fn push_resolved(&self, absolute: bool, given: &[&str], names: &mut Vec<String>) {
        let lead = resolve_parents(given.iter().copied(), absolute);
        names.push([if absolute { "/" } else { "" }, &lead.join("/")].concat());
        for workspace in &self.workspace.0 {
            let from: &[String] = if absolute { &[] } else { workspace };
            let whole = resolve_parents(from.iter().map(String::as_str).chain(given.iter().copied()), true);
            let same = whole.iter().zip(workspace).take_while(|(one, other)| **one == other.as_str()).count();
            if same == workspace.len() {
                names.push(whole[same..].join("/"));
            }
        }
    }
}

/// Strips the `/proc` links to the root and to a process's working directory off a path. The first value is true if the
/// rest is absolute.
fn strip_proc_links(path: &str) -> (bool, Vec<&str>) {
    let mut absolute = path.starts_with('/');
    let mut given: Vec<&str> = components(path).collect();
    while let (true, ["proc", _, link @ ("root" | "cwd"), ..]) = (absolute, given.as_slice()) {
        absolute = *link == "root";
        given.drain(..3);
    }
    (absolute, given)
}

/// Returns a relative path without its leading `..`: from a directory below the workspace those lead into the
/// workspace.
fn strip_leading_parents(given: &[&str]) -> String {
    let kept: Vec<&str> =
        resolve_parents(given.iter().copied(), false).into_iter().skip_while(|part| *part == "..").collect();
    kept.join("/")
}

/// Returns the components of a path, without empty ones and `.`.
fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !matches!(*part, "" | "."))
}

/// Resolves each `..` textually. The parent of the root is the root.
fn resolve_parents<'a>(parts: impl Iterator<Item = &'a str>, absolute: bool) -> Vec<&'a str> {
    let mut kept = Vec::new();
    for part in parts {
        match (part, kept.last()) {
            ("..", Some(&last)) if last != ".." => {
                kept.pop();
            }
            ("..", None) if absolute => {}
            _ => kept.push(part),
        }
    }
    kept
}

/// Returns the path below the workspace as a file tool names it, and the reason why writing there is never better than
/// `ask`.
#[must_use]
pub(super) fn clean_path(path: &str) -> (String, Option<&'static str>) {
    let parts: Vec<&str> = components(path).collect();
    let guard = if path.starts_with(['/', '~']) || parts.contains(&"..") {
        Some("it writes a file outside the workspace")
    } else if parts.iter().any(|part| git_dir::is_git_dir_component(part)) {
        Some("it writes below `.git`")
    } else if parts.is_empty() || path.ends_with('/') {
        Some("it writes to something that is not a file")
    } else {
        None
    };
    // A component before `..` may be a link, so such a path is kept as spelled.
    if path.starts_with('/') || parts.contains(&"..") { (path.to_owned(), guard) } else { (parts.join("/"), guard) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_all_the_names_that_a_rule_may_know_it_by() {
        let workspace = WorkspacePaths::new(["/home/a/w".into(), "/srv/w".into()]);
        let start = PossibleDirectories::in_workspace(&workspace);
        for (path, name) in [
            ("./s/x", "s/x"),
            ("a/../s/x", "s/x"),
            ("a/b/../..//s/./x", "s/x"),
            ("../w/s/x", "s/x"),
            ("../../a/w/s/x", "s/x"),
            ("/home/a/w/s/x", "s/x"),
            ("/home/a/./b/..//w/s/x", "s/x"),
            ("/srv/w/q/../s/x", "s/x"),
            ("/proc/self/cwd/s/x", "s/x"),
            ("/proc/self/root/srv/w/s/x", "s/x"),
            ("/proc/1/root/proc/1/cwd/q/../s/x", "s/x"),
            ("/etc/q/../s", "/etc/s"),
            ("/../../etc/s", "/etc/s"),
            ("../q", "../q"),
        ] {
            let names = start.alternative_paths(path);
            assert!(names.contains(&name.to_owned()) && names[0] == path, "{path}: {names:?}");
        }
        for path in ["../s/x", "/home/a/w2/s/x", "/s/x", "/home/a/w/../s/x", "a/../../s/x"] {
            let names = start.alternative_paths(path);
            assert!(!names.contains(&"s/x".to_owned()), "{path}: {names:?}");
        }
        let mut moved = start.clone();
        moved.track_directory_change(&["cd", "-P", "s"]);
        moved.track_directory_change(&["ls", "t"]);
        for path in ["x", "../s/x", "q/../x", "/proc/self/cwd/../s/x"] {
            let names = moved.alternative_paths(path);
            assert!(names.contains(&"s/x".to_owned()), "{path}: {names:?}");
        }
        moved.track_directory_change(&["cd", "--", "-t"]);
        for name in ["x", "s/x", "-t/x", "s/-t/x"] {
            assert!(moved.alternative_paths("x").contains(&name.to_owned()), "{name}");
        }
        moved.track_directory_change(&["pushd", "/srv/w/q/.."]);
        assert!(moved.alternative_paths("s/x").contains(&"s/x".to_owned()));
        for path in ["/s/x", "~+/s/x", "../../s/x"] {
            let names = PossibleDirectories::unknown(&workspace).alternative_paths(path);
            assert!(names.contains(&"s/x".to_owned()), "{path}: {names:?}");
        }
        assert!(PossibleDirectories::unknown(&workspace).alternative_paths("").is_empty());
    }

    #[test]
    fn directories_that_cannot_be_listed_are_told() {
        let workspace = WorkspacePaths::new(["/w".into()]);
        let start = PossibleDirectories::in_workspace(&workspace);
        let after = |commands: &[&[&str]]| {
            let mut from = start.clone();
            commands.iter().for_each(|words| from.track_directory_change(words));
            from
        };
        let long = "a/".repeat(3000);
        let many: Vec<[&str; 2]> = ["a", "b", "c", "d", "e", "f", "g"].map(|to| ["cd", to]).into();
        let many: Vec<&[&str]> = many.iter().map(|words| &words[..]).collect();
        for commands in [&[&["cd"][..]][..], &[&["cd", "-P"]], &[&["cd", "-"]], &[&["cd", &long]], &many] {
            let from = after(commands);
            assert!(from.ask_reason("x").is_some() && from.ask_reason("/x").is_none(), "{commands:?}");
            assert!(from.ask_reason("/proc/self/cwd/x").is_some());
        }
        for commands in [&many[1..], &[&["popd"]], &[&["pushd"]], &[&["cd", "a"], &["cd", "./a/../"], &["ls", "-"]]] {
            assert_eq!(after(commands).ask_reason("x"), None, "{commands:?}");
        }
        assert_eq!(after(&many[1..]).entered.len(), 63);
    }

    #[test]
    fn paths_are_those_of_file_tools() {
        for (path, wanted, asks) in [
            ("a/b", "a/b", false),
            ("./a//./b", "a/b", false),
            ("../a", "../a", true),
            ("a/../../b", "a/../../b", true),
            ("/etc/passwd", "/etc/passwd", true),
            ("sub/.GIT/config", "sub/.GIT/config", true),
            ("GIT~1/config", "GIT~1/config", true),
            ("", "", true),
            ("a/", "a", true),
        ] {
            let (path, guard) = clean_path(path);
            assert_eq!((&*path, guard.is_some()), (wanted, asks));
        }
    }
}
