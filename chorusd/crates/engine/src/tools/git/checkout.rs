//! The tool `git_checkout`: changes to a branch.

use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::run::Git;
use super::{GitResult, ref_names, worktree};
use crate::tools::ToolContext;
use crate::tools::tool::{Tool, ToolOutcome};

pub(crate) struct GitCheckout;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    branch: String,
    /// Create the branch first.
    #[serde(default)]
    create: bool,
}

impl Tool for GitCheckout {
    const NAME: &'static str = "git_checkout";
    const DESCRIPTION: &'static str = "Switches to a branch. Keeps uncommitted changes, or fails if they conflict.";
    const USES_WORKSPACE: bool = true;
    type Params = Params;

    fn action(params: &Params, _: &ToolContext) -> Result<String, String> {
        ref_names::check_branch(&params.branch)?;
        Ok(Action::GitCheckout { name: &params.branch }.to_string())
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        checkout(params, &ctx).await.map_or_else(ToolOutcome::error, ToolOutcome::success)
    }
}

async fn checkout(params: Params, ctx: &ToolContext) -> GitResult<String> {
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    let git = Git::new(ctx).await?;
    let branch = params.branch.as_str();
    worktree::check_own_branch(ctx, branch)?;
    if params.create {
        git.output(["checkout", "--quiet", "--no-track", "--no-recurse-submodules", "-b", branch, "--"]).await?;
        return Ok(format!("created branch {branch} and switched to it"));
    }
    // A tag or commit of that name is not accepted.
    let known = git.run(["show-ref", "--verify", "--quiet", &format!("refs/heads/{branch}")]).await?;
    if !known.ok {
        return Err(format!(
            "branch {branch} does not exist; list branches with git_branch, or create it with `create`"
        ));
    }
    // It changes files that other conversations have seen.
    let _command = ctx.start_command().await?;
    git.output(["checkout", "--quiet", "--no-guess", "--no-recurse-submodules", branch, "--"]).await?;
    Ok(format!("switched to branch {branch}"))
}
