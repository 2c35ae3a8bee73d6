//! Finds the transcripts of other programs on this machine.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::ui::units::pluralize;

/// The limit on nested directories.
const MAX_DEPTH: usize = 8;

/// The bytes of a transcript that are searched for its first time.
const HEAD_BYTES: u64 = 64 * 1024;

/// The programs whose transcripts are looked for, with the directories below the user's home.
const PROGRAMS: [(&str, &[&str]); 3] = [
    ("Claude Code", &[".claude/projects", ".config/claude/projects"]),
    ("Codex", &[".codex/sessions", ".codex/archived_sessions"]),
    ("goose", &[".local/share/goose/sessions", ".config/goose/sessions"]),
];

/// The transcripts of one program.
#[derive(Debug)]
pub(super) struct Transcripts {
    pub program: &'static str,
    /// The directories that contain them, below the user's home.
    pub dirs: Vec<&'static str>,
    /// Sorted by path.
    pub files: Vec<String>,
}

/// Finds the transcripts in the usual directories of the user.
pub(super) fn on_this_machine() -> Vec<Transcripts> {
    std::env::home_dir().map(|home| below_home(&home)).unwrap_or_default()
}

fn below_home(home: &Path) -> Vec<Transcripts> {
    let found = PROGRAMS.iter().map(|(program, dirs)| {
        let mut found = Transcripts { program, dirs: Vec::new(), files: Vec::new() };
        for dir in *dirs {
            let before = found.files.len();
            found.files.extend(below(&home.join(dir)).into_iter().filter(|file| file.ends_with(".jsonl")));
            if found.files.len() > before {
                found.dirs.push(dir);
            }
        }
        found
    });
    found.filter(|found| !found.files.is_empty()).collect()
}

/// Returns the files below `dir` whose extension is that of a transcript, sorted by path.
pub(super) fn below(dir: &Path) -> Vec<String> {
    let mut files = Vec::new();
    collect(dir, 0, &mut files);
    files.sort();
    files.into_iter().filter_map(|path| path.into_os_string().into_string().ok()).collect()
}

fn collect(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        // Symbolic links are not followed: they could lead round in a circle.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth < MAX_DEPTH {
            collect(&path, depth + 1, files);
        } else if kind.is_file()
            && path
                .extension()
                .is_some_and(|extension| extension == "jsonl" || extension == "json" || extension == "md")
        {
            files.push(path);
        }
    }
}

/// Returns when the conversation in a transcript began: the first `"timestamp"` near its beginning, as Claude Code and Codex
/// write it; otherwise when the file was last changed, which copies of a directory often lose.
pub(super) fn began_at(file: &str) -> Option<Timestamp> {
    let mut head = Vec::new();
    let opened = File::open(file).ok()?;
    opened.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let written = head.split("\"timestamp\"").skip(1).find_map(|rest| {
        let value = rest.trim_start_matches([':', ' ']).strip_prefix('"')?;
        value.split('"').next()?.parse().ok()
    });
    written.or_else(|| Timestamp::try_from(std::fs::metadata(file).ok()?.modified().ok()?).ok())
}

impl Transcripts {
    /// Formats `Claude Code: 43 transcripts in ~/.claude/projects, 12 new or changed`; `new` of them are.
    pub(super) fn describe(&self, new: usize) -> String {
        let count = self.files.len();
        let dirs = self.dirs.iter().map(|dir| format!("~/{dir}")).collect::<Vec<_>>().join(" and ");
        let news = if new == count { String::new() } else { format!(", {new} new or changed") };
        format!("{}: {} in {dirs}{news}", self.program, pluralize(count as u64, "transcript"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transcripts_are_found_where_programs_keep_them() {
        let home = tempfile::tempdir().expect("a directory");
        for file in
            [".claude/projects/p/a.jsonl", ".claude/projects/p/note.txt", ".codex/sessions/2026/01/02/rollout-1.jsonl"]
        {
            let path = home.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("created");
            std::fs::write(path, "{}").expect("written");
        }
        let found = below_home(home.path());
        let described: Vec<_> = found.iter().map(|found| found.describe(1)).collect();
        assert_eq!(
            described,
            ["Claude Code: 1 transcript in ~/.claude/projects", "Codex: 1 transcript in ~/.codex/sessions"]
        );
        assert_eq!(found[0].describe(0), "Claude Code: 1 transcript in ~/.claude/projects, 0 new or changed");
        assert!(found[0].files[0].ends_with("/p/a.jsonl"), "{found:?}");
        assert_eq!(below(&home.path().join(".claude")).len(), 1);
    }

    #[test]
    fn a_conversation_began_at_its_first_time_or_else_when_its_file_was_changed() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("a.jsonl");
        let file = path.to_str().expect("UTF-8");
        std::fs::write(&path, "{\"type\":\"summary\"}\n{\"timestamp\": \"2026-10-28T09:00:00.000Z\"}\n")
            .expect("written");
        assert_eq!(began_at(file), "2026-10-28T09:00:00Z".parse().ok());
        std::fs::write(&path, "{\"timestamp\": \"yesterday\"}").expect("written");
        let changed = std::fs::metadata(&path).and_then(|file| file.modified()).expect("a time");
        assert_eq!(began_at(file), Timestamp::try_from(changed).ok());
        assert_eq!(began_at("/nonexistent/a.jsonl"), None);
    }
}
