//! The directory in which the tools of a conversation work.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::git::worktree::Worktree;

/// The place in which the tools of a conversation work.
#[derive(Debug, Clone)]
pub enum WorkingDirectory {
    /// In the agent's workspace.
    Workspace,
    /// In a git worktree of it.
    Worktree(Arc<Worktree>),
    /// Nowhere: the conversation should have a worktree and has none, for this reason.
    Unavailable(String),
}

impl WorkingDirectory {
    /// Returns the worktree, if there is one.
    #[must_use]
    pub fn worktree(&self) -> Option<&Arc<Worktree>> {
        match self {
            Self::Worktree(worktree) => Some(worktree),
            Self::Workspace | Self::Unavailable(_) => None,
        }
    }

    /// Returns true if other conversations work in the same directory.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Workspace)
    }

    /// Returns the path, which does not exist if there is no directory. `files_dir` has the workspace and the worktrees.
    #[must_use]
    pub fn path(&self, files_dir: &Path) -> PathBuf {
        match self {
            Self::Workspace => files_dir.join("workspace"),
            Self::Worktree(worktree) => worktree.dir.clone(),
            Self::Unavailable(_) => files_dir.join("worktrees").join(".unavailable"),
        }
    }

    /// Describes the directory, to be read after "in".
    #[must_use]
    pub fn describe(&self) -> &'static str {
        if self.is_shared() { "the workspace" } else { "its worktree" }
    }
}
