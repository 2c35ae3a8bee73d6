//! Checkpoints of a workspace: commits that saved sessions name, and bringing their files back. No model calls this; git is run as its
//! tools run it, and never without a sandbox.

use super::commit::{commit_staged, nested_repositories, stage_changes};
use super::ignored_conflicts::find_conflict;
use super::run::Git;
use super::{GitResult, repository_dir};
use crate::tools::ToolContext;

/// Where commits that sessions name are kept, whatever becomes of the branch that they were made on.
const CHECKPOINT_REFS: &str = "refs/chorus/checkpoints";

/// Files that git keeps while something is under way that a commit would end.
const IN_PROGRESS_FILES: [(&str, &str); 5] = [
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
];

/// Says by its status whether two states of the files are the same.
const DIFF_QUIET_ARGS: [&str; 5] = ["diff", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"];

/// How files can be brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RestoreFit {
    /// Nothing is in their way.
    Clean,
    /// They are there and in the index, as where this was stopped half-way: only the commit is missing.
    Uncommitted,
}

/// Why files are not brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreError {
    /// Changes of the workspace would be lost: what git says of them.
    Changes(String),
    /// There is no such commit in this workspace.
    UnknownCommit,
    Failed(String),
}

impl From<String> for RestoreError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// A commit that has the files of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointCommit {
    pub commit: String,
    /// Repositories inside the workspace, as git prints their paths: the commit names their commits, and has none of their files.
    pub excluded_repositories: Vec<String>,
}

/// Commits all changes of the workspace, where there are any; the newest commit.
///
/// # Errors
/// Why there is none, to be read after "because".
pub async fn create_checkpoint(scene: &ToolContext, message: &str) -> GitResult<CheckpointCommit> {
    let _alone = scene.services.git_locks.lock(scene.agent).await;
    let git = open_repository(scene).await?;
    if stage_changes(&git, &[]).await? {
        commit_staged(&git, message, Vec::new()).await?;
    }
    let commit = git.output(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await;
    let commit = commit.map_err(|_| "it has no commits and no files".to_owned())?;
    git.output(["update-ref", &format!("{CHECKPOINT_REFS}/{commit}"), &commit]).await?;
    // A list that cannot be read says that there are some, too.
    let without = nested_repositories(&git).await.unwrap_or_else(|_| vec!["many".into()]);
    Ok(CheckpointCommit { commit, excluded_repositories: without })
}

/// Looks whether the files of `commit` can be brought back, and changes nothing.
///
/// # Errors
/// Why they cannot.
pub async fn check_restore(scene: &ToolContext, commit: &str) -> Result<(), RestoreError> {
    let _alone = scene.services.git_locks.lock(scene.agent).await;
    check_fit(scene, &open_repository(scene).await?, commit).await.map(drop)
}

/// Brings the files of `commit` back in a new commit behind the newest one: the branch keeps its history, and the way back is as short as
/// the way there. What git ignores and what it does not know stay as they are. Where there can be no commit, the files go back to what they
/// were. Answers the newest commit.
///
/// # Errors
/// Why they are not back.
pub async fn restore_files(scene: &ToolContext, commit: &str, message: &str) -> Result<String, RestoreError> {
    let _alone = scene.services.git_locks.lock(scene.agent).await;
    let git = open_repository(scene).await?;
    let ready = check_fit(scene, &git, commit).await?;
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
                Err(_) => RestoreError::Failed(format!("they are there, and {why}")),
            });
        }
    }
    Ok(git.output(["rev-parse", "--verify", "HEAD^{commit}"]).await?)
}

/// git, where it may be run and nothing is under way.
async fn open_repository(scene: &ToolContext) -> GitResult<Git<'_>> {
    scene.services.sandbox.level_or_probe().await;
    if let Some(why) = scene.services.sandbox.unconfined_reason() {
        return Err(format!("commands cannot be confined here: {why}"));
    }
    let dir = repository_dir(scene)?;
    if let Some((_, what)) = IN_PROGRESS_FILES.iter().find(|(file, _)| dir.join(file).symlink_metadata().is_ok()) {
        return Err(format!("{what} is under way in the workspace"));
    }
    Git::new(scene).await
}

/// Whether git would put the files of `commit` in the place of those that are there, with nothing lost.
async fn check_fit(scene: &ToolContext, git: &Git<'_>, commit: &str) -> Result<RestoreFit, RestoreError> {
    // It comes out of a file, and goes on to a command line.
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
    // It says what it would overwrite or remove, or which file is not as it was committed.
    let said_so = ["would", "uptodate"].iter().any(|word| tried.text.contains(word));
    match tried.ok {
        true => {}
        false if said_so => return Err(RestoreError::Changes(tried.text)),
        false => return Err(RestoreError::Failed(tried.text)),
    }
    match find_conflict(git, scene.workspace(), commit).await? {
        Some(path) => Err(RestoreError::Changes(format!("{} is in the way, and in no commit", path.display()))),
        None => Ok(RestoreFit::Clean),
    }
}
