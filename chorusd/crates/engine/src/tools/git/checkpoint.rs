//! Checkpoints of a workspace: creates the commits that saved sessions refer to, and restores their files. Models
//! cannot call this. Git is run as by the git tools, and never without a sandbox.

use super::commit::{commit_staged, nested_repositories, stage_changes};
use super::ignored_conflicts::find_conflict;
use super::run::Git;
use super::{GitResult, repository_dirs};
use crate::tools::ToolContext;

/// Prefix of the references that keep checkpoint commits alive, whatever happens to the branch that they were made on.
const CHECKPOINT_REFS: &str = "refs/chorus/checkpoints";

/// Files that exist while an operation is in progress that a commit would end.
const IN_PROGRESS_FILES: [(&str, &str); 5] = [
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
];

/// Arguments of a `git diff` whose exit status says whether two states of the files are equal.
const DIFF_QUIET_ARGS: [&str; 5] = ["diff", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"];

/// How the files of a commit can be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestoreFit {
    /// Nothing is in their way.
    Clean,
    /// The files and the index already match, as after an interrupted restore: only the commit is missing.
    Uncommitted,
}

/// The reason why files are not restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreError {
    /// Uncommitted changes would be lost; with git's message.
    Changes(String),
    /// The workspace has no such commit.
    UnknownCommit,
    Failed(String),
}

impl From<String> for RestoreError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// A commit with the files of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointCommit {
    pub commit: String,
    /// Repositories nested in the workspace, as git prints their paths: the commit refers to their commits, but does
    /// not contain their files.
    pub excluded_repositories: Vec<String>,
}

/// Commits all changes of the workspace, if there are any, and returns the newest commit.
///
/// # Errors
/// The reason why there is no commit, as a text that continues "because".
pub async fn create_checkpoint(ctx: &ToolContext, message: &str) -> GitResult<CheckpointCommit> {
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    let git = open_repository(ctx).await?;
    if stage_changes(&git, &[]).await? {
        commit_staged(&git, message, Vec::new()).await?;
    }
    let commit = git.output(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await;
    let commit = commit.map_err(|_| "the workspace has no commits and no files".to_owned())?;
    let set_reference = ["update-ref", &format!("{CHECKPOINT_REFS}/{commit}"), &commit];
    match ctx.place.worktree() {
        None => git.output(set_reference).await?,
        Some(worktree) => {
            // The commands of the conversation cannot write there, and only this one may: the others write files that may be
            // links into it.
            let directory = worktree.prepare_directory(CHECKPOINT_REFS).await?;
            git.clone().with_directory(directory).output(set_reference).await?
        }
    };
    // If the list cannot be read, report that there are some.
    let without = nested_repositories(&git).await.unwrap_or_else(|_| vec!["many".into()]);
    Ok(CheckpointCommit { commit, excluded_repositories: without })
}

/// Checks whether the files of `commit` can be restored, without changing anything.
pub async fn check_restore(ctx: &ToolContext, commit: &str) -> Result<(), RestoreError> {
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    check_fit(ctx, &open_repository(ctx).await?, commit).await.map(drop)
}

/// Restores the files of `commit` in a new commit on top of the newest one, so that the branch keeps its history and
/// the restore can be undone in the same way. Ignored and untracked files stay as they are. If the commit cannot be
/// made, the files are reset to their previous state. Returns the newest commit.
pub async fn restore_files(ctx: &ToolContext, commit: &str, message: &str) -> Result<String, RestoreError> {
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    let git = open_repository(ctx).await?;
    let ready = check_fit(ctx, &git, commit).await?;
    let _command = ctx.start_command().await?;
    let missing = match ready {
        RestoreFit::Uncommitted => true,
        RestoreFit::Clean => !git.run([&DIFF_QUIET_ARGS[..], &["HEAD", commit, "--"]].concat()).await?.ok,
    };
    if missing {
        if ready == RestoreFit::Clean {
            git.output(["read-tree", "-m", "-u", "HEAD", commit]).await?;
        }
        if let Err(why) = commit_staged(&git, message, Vec::new()).await {
            return Err(match git.output(["read-tree", "-m", "-u", commit, "HEAD"]).await {
                Ok(_) => RestoreError::Failed(why),
                Err(_) => RestoreError::Failed(format!("the files were restored, but {why}")),
            });
        }
    }
    Ok(git.output(["rev-parse", "--verify", "HEAD^{commit}"]).await?)
}

/// Returns git, if commands can be confined and no operation is in progress.
pub(super) async fn open_repository(ctx: &ToolContext) -> GitResult<Git<'_>> {
    ctx.services.sandbox.level_or_probe().await;
    if let Some(why) = ctx.services.sandbox.unconfined_reason() {
        return Err(format!("no sandbox for commands: {why}"));
    }
    let dirs = repository_dirs(ctx)?;
    let is_there = |file: &str| dirs.git_dir.join(file).symlink_metadata().is_ok();
    if let Some((_, what)) = IN_PROGRESS_FILES.iter().find(|(file, _)| is_there(file)) {
        return Err(format!("{what} is in progress in {}", ctx.place.describe()));
    }
    Git::new(ctx).await
}

/// Checks whether git can replace the present files with those of `commit` without losing any.
pub(super) async fn check_fit(ctx: &ToolContext, git: &Git<'_>, commit: &str) -> Result<RestoreFit, RestoreError> {
    // The id was read from a file and is passed on a command line.
    let is_id = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_id || !git.run(["cat-file", "-e", &format!("{commit}^{{commit}}")]).await?.ok {
        return Err(RestoreError::UnknownCommit);
    }
    let changed = git.output(["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"]).await?;
    if !changed.is_empty() {
        let staged = git.run([&DIFF_QUIET_ARGS[..], &["--cached", commit, "--"]].concat()).await?.ok;
        let there = staged && git.run([&DIFF_QUIET_ARGS[..], &["--"]].concat()).await?.ok;
        return if there { Ok(RestoreFit::Uncommitted) } else { Err(RestoreError::Changes(changed)) };
    }
    let tried = git.run(["read-tree", "-n", "-m", "-u", "HEAD", commit]).await?;
    // These words occur when git lists files that it would overwrite or remove, or that differ from the last commit.
    let said_so = ["would", "uptodate"].iter().any(|word| tried.text.contains(word));
    match tried.ok {
        true => {}
        false if said_so => return Err(RestoreError::Changes(tried.text)),
        false => return Err(RestoreError::Failed(tried.text)),
    }
    match find_conflict(git, ctx.workspace(), commit).await? {
        Some(path) => {
            Err(RestoreError::Changes(format!("{} would be overwritten and is not in any commit", path.display())))
        }
        None => Ok(RestoreFit::Clean),
    }
}
