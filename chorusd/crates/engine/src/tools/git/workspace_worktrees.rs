//! Brings the worktree of a conversation, which is here from an earlier time, up to the tip of a chain of bundles.

use super::GitResult;
use super::run::Git;
use super::workspace_chain::{WorkspaceState, resolve};
use super::workspace_restore::{Chain, move_files_away};
use crate::tools::ToolContext;

/// Sets the files and the branch of a worktree, whose changes are committed, to what the chain has for its branch, unless they are newer
/// here. Returns the name of a new branch with what was here and the chain lacks.
///
/// # Errors
/// The reason why they stay as they are.
pub(super) async fn restore_worktree(
    ctx: &ToolContext,
    chain: &Chain<'_>,
    state: &WorkspaceState,
) -> GitResult<Option<String>> {
    let Some(worktree) = ctx.place.worktree() else { return Ok(None) };
    let branch = format!("refs/heads/{}", worktree.branch());
    let Some(wanted) = state.commit_of(&branch) else { return Ok(None) };
    let git = Git::new(ctx).await?;
    let head = git.run(["symbolic-ref", "--quiet", "HEAD"]).await?;
    if !head.ok || head.text != branch {
        return Err(format!("the worktree {} is on another branch", worktree.name));
    }
    let here = resolve(&git, "HEAD").await?.ok_or("the worktree has no commits")?;
    let former = chain.former.as_ref().and_then(|former| former.commit_of(&branch));
    if here == wanted || chain.is_newer(&here, wanted, former).await? {
        return Ok(None);
    }
    let saved = chain.save(&here, wanted).await?;
    let _command = ctx.start_command().await?;
    move_files_away(&git, ctx.workspace(), wanted, chain.label).await?;
    git.output(["read-tree", "-m", "-u", "HEAD", wanted]).await?;
    git.output(["update-ref", &branch, wanted]).await?;
    Ok(saved)
}
