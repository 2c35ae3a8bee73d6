//! Brings a workspace up to the tip of a chain of bundles. Nothing here is lost: it is committed first, and what the chain does
//! not have stays on a branch; files that are in no commit are moved to another name.

use std::path::{Path, PathBuf};

use super::GitResult;
use super::checkpoint::{create_checkpoint, open_repository};
use super::commit::commit_staged;
use super::ignored_conflicts::find_conflict;
use super::run::Git;
use super::workspace_chain::{BUNDLE_REF, CHAIN_REF, FetchedBundle, WorkspaceState, resolve};
use super::workspace_worktrees::restore_worktree;
use crate::tools::ToolContext;

/// The tip that was read from a bundle, until it is that of the workspace.
const INCOMING_REF: &str = "refs/chorus/workspace-incoming";

/// Maximum number of files that are moved to another name.
const MAX_MOVED_FILES: usize = 100;

/// Fate of what was here and is not in the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocalFiles {
    /// New branches with what was changed here.
    pub saved_as: Vec<String>,
    /// Branches that have other commits here than in the chain, and keep those from here.
    pub kept_branches: Vec<String>,
}

/// Makes a repository in the workspace if there is none: what is done here is to be committed, whatever can be restored.
///
/// # Errors
/// The reason, as a text that continues "because".
pub async fn prepare_repository(ctx: &ToolContext) -> GitResult<()> {
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    if ctx.workspace().join(".git").symlink_metadata().is_err() {
        let init = ["init", "--quiet", "--template=", "--initial-branch=main"];
        Git::without_repository(ctx).output(init).await?;
    }
    Ok(())
}

/// Brings the workspace, and the worktrees of conversations that are here, up to the tip of the last bundle. `label` names this node
/// and the time, as a part of names.
///
/// # Errors
/// The reason why it is not, as a text that continues "because". The files of the workspace are as they were then.
pub async fn restore_chain(
    ctx: &ToolContext,
    worktrees: &[ToolContext],
    bundles: &[FetchedBundle],
    tip: &str,
    label: &str,
) -> GitResult<LocalFiles> {
    const MESSAGE: &str = "Files of this node before another one's";
    let committed = create_checkpoint(ctx, MESSAGE).await;
    let mut committed_worktrees = Vec::new();
    for worktree in worktrees {
        match create_checkpoint(worktree, MESSAGE).await {
            Ok(_) => committed_worktrees.push(worktree),
            // Its branch stays as it is, which is told below.
            Err(why) => tracing::warn!(agent = %ctx.agent_name, why, "cannot commit a worktree before a restore"),
        }
    }
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    let git = open_repository(ctx).await?;
    let is_empty = resolve(&git, "HEAD").await?.is_none();
    if is_empty {
        commit_staged(&git, "Nothing yet", Vec::new()).await?;
    } else {
        committed?;
    }
    for bundle in bundles {
        read_bundle(&git, bundle).await?;
    }
    let message = git.output(["log", "-1", "--format=%B", tip]).await?;
    let state = WorkspaceState::parse(&message).ok_or("its newest commit does not describe a workspace")?;
    let wanted = resolve(&git, &state.commit).await?.ok_or("its newest commit is missing")?;
    let here = resolve(&git, "HEAD").await?.ok_or("the workspace has no commits")?;
    let chain = Chain { git: &git, tip, former: read_former(&git).await?, label };
    let mut files = LocalFiles::default();
    let former = chain.former.as_ref().map(|former| former.commit.as_str());
    if is_empty || !chain.is_newer(&here, &wanted, former).await? {
        if !is_empty {
            files.saved_as.extend(chain.save(&here, &wanted).await?);
        }
        if let Some(branch) = &state.head
            && let Some(other) = resolve(&git, branch).await?.filter(|other| *other != here)
        {
            files.saved_as.extend(chain.save(&other, &wanted).await?);
        }
        let _command = ctx.start_command().await?;
        move_files_away(&git, ctx.workspace(), &wanted, label).await?;
        git.output(["read-tree", "-m", "-u", "HEAD", &wanted]).await?;
        match &state.head {
            Some(branch) => {
                git.output(["update-ref", branch, &wanted]).await?;
                git.output(["symbolic-ref", "HEAD", branch]).await?;
            }
            None => drop(git.output(["update-ref", "--no-deref", "HEAD", &wanted]).await?),
        }
    }
    for worktree in committed_worktrees {
        match restore_worktree(worktree, &chain, &state).await {
            Ok(saved) => files.saved_as.extend(saved),
            Err(why) => tracing::warn!(agent = %ctx.agent_name, why, "cannot bring a worktree up to date"),
        }
    }
    let others = state.branches.iter().filter(|(_, name)| Some(name) != state.head.as_ref());
    for (commit, name) in others {
        if !chain.set_branch(commit, name).await {
            files.kept_branches.extend(name.strip_prefix("refs/heads/").map(str::to_owned));
        }
    }
    git.output(["update-ref", &format!("refs/chorus/checkpoints/{wanted}"), &wanted]).await?;
    git.output(["update-ref", CHAIN_REF, tip]).await?;
    git.run(["update-ref", "-d", INCOMING_REF]).await?;
    Ok(files)
}

/// Makes the chain up to `tip`, whose missing bundles are these, that of the workspace without changing its files. If it lacks the files of
/// the chain, these get a branch, whose name is returned. `label` is a part of it.
///
/// # Errors
/// The reason why nothing is joined, as a text that continues "because".
pub async fn join(ctx: &ToolContext, bundles: &[FetchedBundle], tip: &str, label: &str) -> GitResult<Option<String>> {
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    let git = open_repository(ctx).await?;
    for bundle in bundles {
        read_bundle(&git, bundle).await?;
    }
    let message = git.output(["log", "-1", "--format=%B", tip]).await?;
    let state = WorkspaceState::parse(&message).ok_or("its newest commit does not describe a workspace")?;
    let here = resolve(&git, "HEAD").await?.ok_or("the workspace has no commits")?;
    let mut branch = None;
    if !is_ancestor(&git, &state.commit, &here).await? && !same_files(&git, &state.commit, &here).await? {
        branch = Some(new_branch(&git, &state.commit, &format!("from-{label}")).await?);
    }
    git.output(["update-ref", CHAIN_REF, tip]).await?;
    git.run(["update-ref", "-d", INCOMING_REF]).await?;
    Ok(branch)
}

/// Verifies a bundle and reads its commits.
async fn read_bundle(git: &Git<'_>, bundle: &FetchedBundle) -> GitResult<()> {
    let path = bundle.path.to_str().ok_or("the path of the home is not UTF-8")?;
    let reader = git.clone().with_read_only_file(bundle.path.clone()).with_protocol("file");
    reader.output(["bundle", "verify", "--quiet", path]).await?;
    let refs = format!("+{BUNDLE_REF}:{INCOMING_REF}");
    let fetch = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", path, &refs];
    reader.output(fetch).await?;
    match resolve(git, INCOMING_REF).await? {
        Some(found) if found == bundle.tip => Ok(()),
        _ => Err("a bundle has another commit than its row says".into()),
    }
}

async fn is_ancestor(git: &Git<'_>, older: &str, newer: &str) -> GitResult<bool> {
    Ok(git.run(["merge-base", "--is-ancestor", older, newer]).await?.ok)
}

async fn same_files(git: &Git<'_>, one: &str, other: &str) -> GitResult<bool> {
    let trees = (format!("{one}^{{tree}}"), format!("{other}^{{tree}}"));
    Ok(git.output(["rev-parse", &trees.0]).await? == git.output(["rev-parse", &trees.1]).await?)
}

/// Makes a new branch, with a number if there is one of that name. Returns its name.
async fn new_branch(git: &Git<'_>, commit: &str, name: &str) -> GitResult<String> {
    for number in 1..100 {
        let name = if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
        let full = format!("refs/heads/{name}");
        if resolve(git, &full).await?.is_none() {
            git.output(["update-ref", &full, commit, ""]).await?;
            return Ok(name);
        }
    }
    Err("the workspace has too many branches of that name".into())
}

/// The state in the tip that this workspace and the chain had in common last.
async fn read_former(git: &Git<'_>) -> GitResult<Option<WorkspaceState>> {
    let Some(tip) = resolve(git, CHAIN_REF).await? else { return Ok(None) };
    Ok(WorkspaceState::parse(&git.output(["log", "-1", "--format=%B", &tip]).await?))
}

/// A chain whose commits are all here, compared with what was here.
pub(super) struct Chain<'a> {
    pub git: &'a Git<'a>,
    /// The newest tip, which has everything that the chain ever had among its ancestors.
    pub tip: &'a str,
    /// The state of the tip that this workspace had last.
    pub former: Option<WorkspaceState>,
    /// A part of the names of new branches.
    pub label: &'a str,
}

impl Chain<'_> {
    /// Returns true if the files of `here` are newer than those of `wanted`, which the chain has: they were made from them, and the
    /// chain has not gone back to them from `former`, which it had when both were last the same.
    pub(super) async fn is_newer(&self, here: &str, wanted: &str, former: Option<&str>) -> GitResult<bool> {
        if self.has(here).await? || !is_ancestor(self.git, wanted, here).await? {
            return Ok(false);
        }
        match former {
            Some(former) if former != wanted => Ok(!is_ancestor(self.git, wanted, former).await?),
            _ => Ok(true),
        }
    }

    async fn has(&self, commit: &str) -> GitResult<bool> {
        is_ancestor(self.git, commit, self.tip).await
    }

    /// Makes a new branch at `here` if the chain lacks it and its files are not those of `wanted`. Returns its name.
    pub(super) async fn save(&self, here: &str, wanted: &str) -> GitResult<Option<String>> {
        if self.has(here).await? || same_files(self.git, here, wanted).await? {
            return Ok(None);
        }
        new_branch(self.git, here, &format!("conflict-{}", self.label)).await.map(Some)
    }

    /// Creates a branch that is missing here, or sets it to the commit that the chain has. Returns false if it stays as it is, because a
    /// worktree uses it or it has other commits here.
    async fn set_branch(&self, commit: &str, name: &str) -> bool {
        let git = self.git;
        let set = async {
            match resolve(git, name).await? {
                None => {}
                Some(here) if here == commit || is_ancestor(git, commit, &here).await? && !self.has(&here).await? => {
                    return Ok(true);
                }
                Some(here) if !self.has(&here).await? => return Ok(false),
                Some(_) => {
                    let used = git.output(["for-each-ref", "--format=%(HEAD)%(worktreepath)", name]).await?;
                    if !used.trim().is_empty() {
                        return Ok(false);
                    }
                }
            }
            git.output(["update-ref", name, commit]).await.map(|_| true)
        };
        set.await.unwrap_or_else(|why: String| {
            tracing::warn!(branch = name, why, "cannot set a branch of a workspace");
            false
        })
    }
}

/// Gives files that are in no commit, and that git would overwrite, another name.
pub(super) async fn move_files_away(git: &Git<'_>, dir: PathBuf, wanted: &str, label: &str) -> GitResult<()> {
    for _ in 0..MAX_MOVED_FILES {
        let Some(path) = find_conflict(git, dir.clone(), wanted).await? else { return Ok(()) };
        let path = replaced_directory(git, wanted, &path).await?.unwrap_or(path);
        let copy = path_aside(&path, label);
        git.run_shell("[ ! -e \"$2\" ] && mv -- \"$1\" \"$2\"", [dot_slash(path.into()), dot_slash(copy.into())])
            .await?;
    }
    Err("too many files that are in no commit are in its way".into())
}

/// Returns the directory above `path` in whose place `wanted` has a file.
async fn replaced_directory(git: &Git<'_>, wanted: &str, path: &Path) -> GitResult<Option<PathBuf>> {
    for above in path.ancestors().skip(1) {
        let Some(name) = above.to_str().filter(|name| !name.is_empty()) else { continue };
        let kind = git.run(["cat-file", "-t", &format!("{wanted}:{name}")]).await?;
        if kind.ok && kind.text == "blob" {
            return Ok(Some(above.to_owned()));
        }
    }
    Ok(None)
}

/// Returns the name that a file gets. One that is long is not in it.
fn path_aside(path: &Path, label: &str) -> PathBuf {
    const MAX_NAME_BYTES: usize = 255;
    let ending = format!("conflict-{label}");
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{ending}"));
    path.with_file_name(if name.len() > MAX_NAME_BYTES { ending.into() } else { name })
}

fn dot_slash(path: std::ffi::OsString) -> std::ffi::OsString {
    let mut relative = std::ffi::OsString::from("./");
    relative.push(path);
    relative
}
