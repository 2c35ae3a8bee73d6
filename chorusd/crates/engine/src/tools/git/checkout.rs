//! The tool `git_checkout`: changes to a branch.

use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::run::Git;
use super::{GitResult, ref_names};
use crate::tools::ToolContext;
use crate::tools::tool::{Tool, ToolOutcome};

pub(crate) struct GitCheckout;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    branch: String,
    /// Makes it first.
    #[serde(default)]
    create: bool,
}

impl Tool for GitCheckout {
    const NAME: &'static str = "git_checkout";
    const DESCRIPTION: &'static str = "Changes to a branch. Changes that are not committed go along, or it is refused.";
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
    if params.create {
        git.output(["checkout", "--quiet", "--no-track", "--no-recurse-submodules", "-b", branch, "--"]).await?;
        return Ok(format!("on the new branch {branch}"));
    }
    // A tag or commit of that name is not accepted.
    let known = git.run(["show-ref", "--verify", "--quiet", &format!("refs/heads/{branch}")]).await?;
    if !known.ok {
        return Err(format!("there is no branch {branch}; git_branch lists them, `create` makes it"));
    }
    git.output(["checkout", "--quiet", "--no-guess", "--no-recurse-submodules", branch, "--"]).await?;
    Ok(format!("on the branch {branch}"))
}
