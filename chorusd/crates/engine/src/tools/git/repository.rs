//! Finds the repository that a conversation works in.

use std::path::PathBuf;

use super::GitResult;
use crate::tools::ToolContext;

/// The directories of a repository, as git names them.
#[derive(Debug)]
pub(super) struct RepositoryDirs {
    /// Has the HEAD and the index: `.git` of the workspace, or the directory of the worktree in it.
    pub git_dir: PathBuf,
    /// Has the objects, the references and the configuration.
    pub common_dir: PathBuf,
}

/// Returns the directories of the repository of the conversation's working directory. The workspace's `.git` must be a
/// real directory, not a link or a file that refers to another repository.
pub(super) fn repository_dirs(ctx: &ToolContext) -> GitResult<RepositoryDirs> {
    if let Some(worktree) = ctx.place.worktree() {
        return Ok(RepositoryDirs { git_dir: worktree.git_dir(), common_dir: worktree.repository.clone() });
    }
    let dir = ctx.workspace().join(".git");
    match dir.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(RepositoryDirs { git_dir: dir.clone(), common_dir: dir }),
        Ok(_) => Err("the .git of the workspace is not a directory; git tools do not follow it".into()),
        Err(_) => Err("the workspace is not a git repository; initialize it with git_init".into()),
    }
}
