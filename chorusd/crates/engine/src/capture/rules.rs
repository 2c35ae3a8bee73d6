//! Decides which conversations of a transcript are captured.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::sync::Mutex;

use super::deleted::DeletedConversations;

/// Decides which conversations of a transcript are captured.
#[derive(Debug)]
pub struct CaptureRules {
    /// Projects, and directories of transcripts, that are left out: as the user named them, and without symbolic links.
    excluded: BTreeSet<PathBuf>,
    pub(super) deleted: Arc<DeletedConversations>,
    /// Which directories were found to be excluded, so that the links of each are resolved once.
    resolved: Mutex<HashMap<PathBuf, bool>>,
}

impl CaptureRules {
    /// Creates the rules for these paths. Blocks for a moment, to resolve their links.
    pub(super) fn new(excluded: impl IntoIterator<Item = PathBuf>, deleted: Arc<DeletedConversations>) -> Self {
        let excluded = excluded.into_iter().flat_map(|path| [real_path(&path), path]).collect();
        Self { excluded, deleted, resolved: Mutex::default() }
    }

    /// Returns true if a conversation that is known by one of these ids is captured. It was held in `project`, and its
    /// transcript is `file`.
    #[must_use]
    pub fn admits(&self, program: &str, ids: &[String], (project, file): (Option<&str>, &str)) -> bool {
        !project.is_some_and(|project| self.excludes(Path::new(project)))
            && !self.excludes_file(Path::new(file))
            && !self.deleted.contains(program, ids)
    }

    /// Returns true if a file is excluded, or in a directory that is, also one that only a link leads to.
    pub(super) fn excludes_file(&self, file: &Path) -> bool {
        if self.excluded.is_empty() {
            return false;
        }
        let real = || file.is_symlink() && self.is_below_excluded(&real_path(file));
        self.is_below_excluded(file) || file.parent().is_some_and(|dir| self.excludes(dir)) || real()
    }

    /// Returns true if a directory is excluded, or in one that is, also by another path that leads to it.
    fn excludes(&self, dir: &Path) -> bool {
        if self.excluded.is_empty() || !dir.is_absolute() {
            return false;
        }
        if self.is_below_excluded(dir) {
            return true;
        }
        if let Some(known) = self.resolved.lock().get(dir) {
            return *known;
        }
        let is_excluded = self.is_below_excluded(&real_path(dir));
        self.resolved.lock().insert(dir.to_owned(), is_excluded);
        is_excluded
    }

    fn is_below_excluded(&self, path: &Path) -> bool {
        self.excluded.iter().any(|excluded| path.starts_with(excluded))
    }
}

/// Returns a path without symbolic links. Of a path that does not exist, or no longer, the part that does is resolved. Blocks for a
/// moment.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    for (at, existing) in path.ancestors().enumerate() {
        if let Ok(real) = fs::canonicalize(existing) {
            let rest = path.components().count() - at;
            return real.join(path.components().skip(rest).collect::<PathBuf>());
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_resolved_also_above_what_does_not_exist() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir(dir.join("diary")).unwrap();
        symlink(dir.join("diary"), dir.join("link")).unwrap();
        assert_eq!(real_path(&dir.join("link")), dir.join("diary"));
        assert_eq!(real_path(&dir.join("link/2026/may")), dir.join("diary/2026/may"));
        assert_eq!(real_path(Path::new("/nothing/like/it")), Path::new("/nothing/like/it"));
    }
}
