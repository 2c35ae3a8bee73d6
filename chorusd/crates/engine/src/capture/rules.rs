//! Decides which conversations of a transcript are captured.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::deleted::DeletedConversations;

/// Decides which conversations of a transcript are captured.
#[derive(Debug)]
pub struct CaptureRules {
    /// Projects, and directories of transcripts, that are left out.
    pub(super) excluded: Vec<PathBuf>,
    pub(super) deleted: Arc<DeletedConversations>,
}

impl CaptureRules {
    /// Returns true if a conversation that is known by one of these ids is captured. It was held in `project`, and its
    /// transcript is `file`.
    #[must_use]
    pub fn admits(&self, program: &str, ids: &[String], (project, file): (Option<&str>, &str)) -> bool {
        let mut paths = project.into_iter().chain([file]).map(Path::new);
        !paths.any(|path| self.excludes(path)) && !self.deleted.contains(program, ids)
    }

    /// Returns true if a transcript is in an excluded directory, also one that only a link leads to.
    pub(super) fn excludes_file(&self, path: &Path) -> bool {
        let real = || path.canonicalize().is_ok_and(|real| self.excludes(&real));
        !self.excluded.is_empty() && (self.excludes(path) || real())
    }

    /// Returns true if a path is excluded, or in a directory that is.
    pub(super) fn excludes(&self, path: &Path) -> bool {
        self.excluded.iter().any(|excluded| path.starts_with(excluded))
    }
}
