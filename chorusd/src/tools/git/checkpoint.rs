//! Checkpoints of a workspace: commits that saved sessions name, and bringing their files back. No model calls this; git is run as its
//! tools run it, and never without a sandbox.

use super::commit::{record, repositories_inside, stage};
use super::in_the_way::in_the_way;
use super::run::Git;
use super::{Told, repository};
use crate::tools::Scene;

/// Where commits that sessions name are kept, whatever becomes of the branch that they were made on.
const KEPT: &str = "refs/chorus/checkpoints";

/// Files that git keeps while something is under way that a commit would end.
const UNDER_WAY: [(&str, &str); 5] = [
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
];

/// Says by its status whether two states of the files are the same.
const SAME: [&str; 5] = ["diff", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"];

/// How files can be brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Nothing is in their way.
    Clean,
    /// They are there and in the index, as where this was stopped half-way: only the commit is missing.
    Uncommitted,
}

/// Why files are not brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// Changes of the workspace would be lost: what git says of them.
    Changes(String),
    /// There is no such commit in this workspace.
    Unknown,
    Failed(String),
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// A commit that has the files of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    pub commit: String,
    /// Repositories inside the workspace, as git prints their paths: the commit names their commits, and has none of their files.
    pub without: Vec<String>,
}

/// Commits all changes of the workspace, where there are any; the newest commit.
///
/// # Errors
/// Why there is none, to be read after "because".
pub async fn checkpoint(scene: &Scene, message: &str) -> Told<Made> {
    let _alone = scene.world.git.of(scene.agent).await;
    let git = ready(scene).await?;
    if stage(&git, &[]).await? {
        record(&git, message, Vec::new()).await?;
    }
    let commit = git.done(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await;
    let commit = commit.map_err(|_| "it has no commits and no files".to_owned())?;
    git.done(["update-ref", &format!("{KEPT}/{commit}"), &commit]).await?;
    // A list that cannot be read says that there are some, too.
    let without = repositories_inside(&git).await.unwrap_or_else(|_| vec!["many".into()]);
    Ok(Made { commit, without })
}

/// Looks whether the files of `commit` can be brought back, and changes nothing.
///
/// # Errors
/// Why they cannot.
pub async fn look(scene: &Scene, commit: &str) -> Result<(), Refused> {
    let _alone = scene.world.git.of(scene.agent).await;
    fits(scene, &ready(scene).await?, commit).await.map(drop)
}

/// Brings the files of `commit` back in a new commit behind the newest one: the branch keeps its history, and the way back is as short as
/// the way there. What git ignores and what it does not know stay as they are. Where there can be no commit, the files go back to what they
/// were. Answers the newest commit.
///
/// # Errors
/// Why they are not back.
pub async fn bring_back(scene: &Scene, commit: &str, message: &str) -> Result<String, Refused> {
    let _alone = scene.world.git.of(scene.agent).await;
    let git = ready(scene).await?;
    let ready = fits(scene, &git, commit).await?;
    let missing = match ready {
        Fit::Uncommitted => true,
        Fit::Clean => !git.run([&SAME[..], &["HEAD", commit, "--"]].concat()).await?.ok,
    };
    if missing {
        if ready == Fit::Clean {
            git.done(["read-tree", "-m", "-u", "HEAD", commit]).await?;
        }
        if let Err(why) = record(&git, message, Vec::new()).await {
            return Err(match git.done(["read-tree", "-m", "-u", commit, "HEAD"]).await {
                Ok(_) => Refused::Failed(why),
                Err(_) => Refused::Failed(format!("they are there, and {why}")),
            });
        }
    }
    Ok(git.done(["rev-parse", "--verify", "HEAD^{commit}"]).await?)
}

/// git, where it may be run and nothing is under way.
async fn ready(scene: &Scene) -> Told<Git<'_>> {
    scene.world.sandbox.known().await;
    if let Some(why) = scene.world.sandbox.missing() {
        return Err(format!("commands cannot be confined here: {why}"));
    }
    let dir = repository(scene)?;
    if let Some((_, what)) = UNDER_WAY.iter().find(|(file, _)| dir.join(file).symlink_metadata().is_ok()) {
        return Err(format!("{what} is under way in the workspace"));
    }
    Git::new(scene).await
}

/// Whether git would put the files of `commit` in the place of those that are there, with nothing lost.
async fn fits(scene: &Scene, git: &Git<'_>, commit: &str) -> Result<Fit, Refused> {
    // It comes out of a file, and goes on to a command line.
    let is_id = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_id || !git.run(["cat-file", "-e", &format!("{commit}^{{commit}}")]).await?.ok {
        return Err(Refused::Unknown);
    }
    let changed = git.done(["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"]).await?;
    if !changed.is_empty() {
        let staged = git.run([&SAME[..], &["--cached", commit, "--"]].concat()).await?.ok;
        let there = staged && git.run([&SAME[..], &["--"]].concat()).await?.ok;
        return if there { Ok(Fit::Uncommitted) } else { Err(Refused::Changes(changed)) };
    }
    let tried = git.run(["read-tree", "-n", "-m", "-u", "HEAD", commit]).await?;
    // It says what it would overwrite or remove, or which file is not as it was committed.
    let said_so = ["would", "uptodate"].iter().any(|word| tried.text.contains(word));
    match tried.ok {
        true => {}
        false if said_so => return Err(Refused::Changes(tried.text)),
        false => return Err(Refused::Failed(tried.text)),
    }
    match in_the_way(git, scene.workspace(), commit).await? {
        Some(path) => Err(Refused::Changes(format!("{} is in the way, and in no commit", path.display()))),
        None => Ok(Fit::Clean),
    }
}
