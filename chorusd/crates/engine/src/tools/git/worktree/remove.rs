//! Removes the worktree of a conversation that is closed.

use std::io;

use rustix::fs::{Mode, OFlags, open, syncfs};

use super::prepare::{connect_existing, discard_directory, forget, remove_creation_mark};
use super::{Worktree, run_blocking};
use crate::tools::ToolContext;
use crate::tools::git::GitResult;
use crate::tools::git::checkpoint::open_repository;
use crate::tools::git::commit::{commit_staged, nested_repositories, stage_changes};
use crate::tools::git::run::Git;

/// The result of removing a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedWorktree {
    /// Changes that were not committed are in a commit of its branch now.
    pub committed: bool,
    /// Commits of its branch that the branch of the workspace does not have.
    pub unmerged_commits: u64,
    /// The branch, which had nothing of its own, was deleted.
    pub branch_deleted: bool,
}

/// Commits what is not committed in the worktree, removes it, and deletes its branch if that is merged. `workspace` is the
/// context of the workspace, `own` that of the worktree.
///
/// # Errors
/// The reason why the directory stays as it was.
pub async fn remove(workspace: &ToolContext, own: &ToolContext, worktree: &Worktree) -> GitResult<RemovedWorktree> {
    let _alone = workspace.services.git_locks.lock(workspace.agent).await;
    let examined = worktree.clone();
    let exists = run_blocking(move || connect_existing(&examined)).await?;
    let committed = exists && commit_all(own, worktree).await?;
    let git = open_repository(workspace).await?;
    let unmerged_commits = count_unmerged(&git, worktree).await?;
    let discarded = worktree.clone();
    run_blocking(move || {
        remove_creation_mark(&discarded);
        if discarded.dir.symlink_metadata().is_err() {
            return Ok(());
        }
        // Git does not wait until its commits are on the disk, and from here on they alone have the files.
        sync_repository(&discarded).and_then(|()| discard_directory(&discarded)).map_err(|e| e.to_string())
    })
    .await?;
    workspace.services.worktrees.remove(worktree);
    // The directory is gone, so that nothing that fails now is a reason for it to stay.
    let branch_deleted = match forget(&git, worktree).await {
        Ok(()) if unmerged_commits == 0 => delete_branches(&git, worktree).await,
        forgotten => forgotten.map(|()| false),
    };
    let branch_deleted = branch_deleted.unwrap_or_else(|why| {
        tracing::warn!(worktree = worktree.name, why, "git still knows a worktree that was removed");
        false
    });
    Ok(RemovedWorktree { committed, unmerged_commits, branch_deleted })
}

/// Commits what is not committed in the worktree. Returns true if there was something.
///
/// # Errors
/// The reason why some of its files are in no commit.
async fn commit_all(own: &ToolContext, worktree: &Worktree) -> GitResult<bool> {
    let git = open_repository(own).await?;
    check_ignored_changes(&git).await?;
    let committed = commit_pending(&git, worktree, "Uncommitted changes of a closed conversation").await?;
    match nested_repositories(&git).await?.first() {
        Some(first) => Err(format!("it contains a nested repository, {first}, whose files no commit has")),
        None => Ok(committed),
    }
}

/// Refuses files whose changes git does not see. Those that a sparse checkout leaves out have none.
async fn check_ignored_changes(git: &Git<'_>) -> GitResult<()> {
    const SCRIPT: &str = r#"git "$@" ls-files -v | grep '^[a-zS] ' | while IFS= read -r line; do
        path=${line#? }
        case $line in 'S "'*) ;; 'S '*) [ -e "$path" ] || [ -h "$path" ] || continue ;; esac
        printf '%s\n' "$line"
        break
    done"#;
    let said = git.run_script(SCRIPT).await?;
    let Some((tag, path)) = said.text.lines().next().and_then(|line| line.split_once(' ')) else { return Ok(()) };
    let bit = if tag.eq_ignore_ascii_case("s") { "skip-worktree" } else { "assume-unchanged" };
    Err(format!("git ignores changes of {path}; to commit them, run git update-index --no-{bit} {path} in it first"))
}

/// Waits until the file system of the repository is on the disk. Blocks.
pub(super) fn sync_repository(worktree: &Worktree) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(syncfs(open(&worktree.repository, flags, Mode::empty())?)?)
}

/// Commits all changes of the worktree on its branch. Returns true if there were some.
pub(super) async fn commit_pending(git: &Git<'_>, worktree: &Worktree, message: &str) -> GitResult<bool> {
    let head = git.run(["symbolic-ref", "--quiet", "HEAD"]).await?;
    let branch = worktree.branch();
    if head.text.trim() != format!("refs/heads/{branch}") {
        let other = head.text.trim().trim_start_matches("refs/heads/");
        let other = if other.is_empty() { "a single commit" } else { other };
        return Err(format!("it has {other} checked out instead of its branch {branch}"));
    }
    let changed = stage_changes(git, &[]).await?;
    if changed {
        commit_staged(git, message, Vec::new()).await?;
    }
    Ok(changed)
}

async fn count_unmerged(git: &Git<'_>, worktree: &Worktree) -> GitResult<u64> {
    let branch = format!("refs/heads/{}", worktree.branch());
    if !git.run(["show-ref", "--verify", "--quiet", &branch]).await?.ok {
        return Ok(0);
    }
    let count = git.output(["rev-list", "--count", &branch, "--not", "HEAD", "--"]).await?;
    count.trim().parse().map_err(|_| format!("git printed {count:?} instead of a number"))
}

/// Deletes the branch. Returns false if the conversation has further ones, or if it is checked out somewhere.
async fn delete_branches(git: &Git<'_>, worktree: &Worktree) -> GitResult<bool> {
    let prefix = format!("refs/heads/{}", worktree.branch_prefix());
    let all = git.output(["for-each-ref", "--format=%(refname) %(worktreepath)", &prefix]).await?;
    let branch = format!("refs/heads/{}", worktree.branch());
    match all.lines().map(str::trim_end).collect::<Vec<_>>()[..] {
        [] => Ok(true),
        [only] if only == branch => git.output(["update-ref", "-d", &branch]).await.map(|_| true),
        _ => Ok(false),
    }
}
