//! Brings a workspace up to the tip of a chain of bundles. Nothing here is lost: it is committed first, and what the chain does
//! not have stays on a branch; files that are in no commit are moved to another name.

use super::GitResult;
use super::checkpoint::{create_checkpoint, open_repository};
use super::commit::commit_staged;
use super::ignored_conflicts::find_conflict;
use super::run::Git;
use super::workspace_chain::{BUNDLE_REF, CHAIN_REF, FetchedBundle, WorkspaceState, resolve};
use crate::tools::ToolContext;

/// The tip that was read from a bundle, until it is that of the workspace.
const INCOMING_REF: &str = "refs/chorus/workspace-incoming";

/// Maximum number of files that are moved to another name.
const MAX_MOVED_FILES: usize = 100;

/// Fate of the files that were here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalFiles {
    /// They are as the chain has them, or newer.
    Current,
    /// The chain does not have what was changed here, which is on this branch.
    OnBranch(String),
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

/// Brings the workspace up to the tip of the last bundle. `label` names this node and the time, as a part of names.
///
/// # Errors
/// The reason why it is not, as a text that continues "because". The files are as they were then.
pub async fn restore_chain(
    ctx: &ToolContext,
    bundles: &[FetchedBundle],
    tip: &str,
    label: &str,
) -> GitResult<LocalFiles> {
    let committed = create_checkpoint(ctx, "Files of this node before another one's").await;
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
    let is_newer_here = !is_empty && is_ancestor(&git, &wanted, &here).await?;
    let mut outcome = LocalFiles::Current;
    if !is_newer_here {
        let is_known = is_empty || is_ancestor(&git, &here, &wanted).await? || same_files(&git, &here, &wanted).await?;
        if !is_known {
            outcome = LocalFiles::OnBranch(save_branch(&git, &here, label).await?);
        }
        if let Some(branch) = &state.head
            && let Some(other) = resolve(&git, branch).await?.filter(|other| *other != here)
            && !is_ancestor(&git, &other, &wanted).await?
        {
            save_branch(&git, &other, label).await?;
        }
        let _command = ctx.start_command().await?;
        move_files_away(&git, ctx, &wanted, label).await?;
        git.output(["read-tree", "-m", "-u", "HEAD", &wanted]).await?;
        match &state.head {
            Some(branch) => {
                git.output(["update-ref", branch, &wanted]).await?;
                git.output(["symbolic-ref", "HEAD", branch]).await?;
            }
            None => drop(git.output(["update-ref", "--no-deref", "HEAD", &wanted]).await?),
        }
    }
    for (commit, name) in &state.branches {
        if Some(name) != state.head.as_ref() {
            set_branch(&git, commit, name).await;
        }
    }
    git.output(["update-ref", &format!("refs/chorus/checkpoints/{wanted}"), &wanted]).await?;
    git.output(["update-ref", CHAIN_REF, tip]).await?;
    git.run(["update-ref", "-d", INCOMING_REF]).await?;
    Ok(outcome)
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

/// Makes a new branch at a commit that would have none. Returns its name.
async fn save_branch(git: &Git<'_>, commit: &str, label: &str) -> GitResult<String> {
    for number in 1..100 {
        let name = if number == 1 { format!("conflict-{label}") } else { format!("conflict-{label}-{number}") };
        let full = format!("refs/heads/{name}");
        if resolve(git, &full).await?.is_none() {
            git.output(["update-ref", &full, commit, ""]).await?;
            return Ok(name);
        }
    }
    Err("the workspace has too many branches of conflicts".into())
}

/// Creates a branch that is missing here, or moves it forward unless a worktree uses it. If it has other commits here, it stays.
async fn set_branch(git: &Git<'_>, commit: &str, name: &str) {
    let set = async {
        match resolve(git, name).await? {
            None => {}
            Some(here) if here == commit || !is_ancestor(git, &here, commit).await? => return Ok(()),
            Some(_) => {
                let used = git.output(["for-each-ref", "--format=%(HEAD)%(worktreepath)", name]).await?;
                if !used.trim().is_empty() {
                    return Ok(());
                }
            }
        }
        git.output(["update-ref", name, commit]).await.map(drop)
    };
    if let Err(why) = set.await {
        tracing::warn!(branch = name, why, "cannot set a branch of a workspace");
    }
}

/// Gives files that are in no commit, and that git would overwrite, another name.
async fn move_files_away(git: &Git<'_>, ctx: &ToolContext, wanted: &str, label: &str) -> GitResult<()> {
    for _ in 0..MAX_MOVED_FILES {
        let Some(path) = find_conflict(git, ctx.workspace(), wanted).await? else { return Ok(()) };
        let mut copy = path.clone().into_os_string();
        copy.push(format!(".conflict-{label}"));
        git.run_shell("[ ! -e \"$2\" ] && mv -- \"$1\" \"$2\"", [dot_slash(path.into_os_string()), dot_slash(copy)])
            .await?;
    }
    Err("too many files that are in no commit are in its way".into())
}

fn dot_slash(path: std::ffi::OsString) -> std::ffi::OsString {
    let mut relative = std::ffi::OsString::from("./");
    relative.push(path);
    relative
}
