//! The tool `git_branch`: creates or lists branches.

use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::run::Git;
use super::{GitResult, ref_names, worktree};
use crate::tools::ToolContext;
use crate::tools::tool::{Tool, ToolOutcome};

pub(crate) struct GitBranch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    #[serde(default)]
    name: Option<String>,
}

impl Tool for GitBranch {
    const NAME: &'static str = "git_branch";
    const DESCRIPTION: &'static str = "Creates a branch without switching to it. Without a name, lists the branches.";
    const USES_WORKSPACE: bool = true;
    type Params = Params;

    fn action(params: &Params, _: &ToolContext) -> Result<String, String> {
        Ok(match &params.name {
            None => Action::Git { verb: "branch" }.to_string(),
            Some(name) => {
                ref_names::check_branch(name)?;
                Action::GitBranch { name }.to_string()
            }
        })
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        branch(params, &ctx).await.map_or_else(ToolOutcome::error, ToolOutcome::success)
    }
}

async fn branch(params: Params, ctx: &ToolContext) -> GitResult<String> {
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    let git = Git::new(ctx).await?;
    match params.name {
        Some(name) => {
            worktree::check_own_branch(ctx, &name)?;
            git.output(["branch", "--no-track", "--", &name]).await?;
            Ok(format!("created branch {name}"))
        }
        None => {
            let said = git.output(["branch", "--list", "--no-column", "--format=%(HEAD) %(refname:short)"]).await?;
            Ok(if said.is_empty() { "no branches yet: nothing was committed".into() } else { said })
        }
    }
}
