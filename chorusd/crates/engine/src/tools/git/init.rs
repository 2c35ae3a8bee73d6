//! The tool `git_init`: creates a repository.

use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::GitResult;
use super::run::Git;
use crate::tools::ToolContext;
use crate::tools::tool::{Tool, ToolOutcome};

pub(crate) struct GitInit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {}

impl Tool for GitInit {
    const NAME: &'static str = "git_init";
    const DESCRIPTION: &'static str = "Initializes a git repository in the workspace.";
    const USES_WORKSPACE: bool = true;
    type Params = Params;

    fn action(_: &Params, _: &ToolContext) -> Result<String, String> {
        Ok(Action::Git { verb: "init" }.to_string())
    }

    async fn run(_: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        init(&ctx).await.map_or_else(ToolOutcome::error, ToolOutcome::success)
    }
}

async fn init(ctx: &ToolContext) -> GitResult<String> {
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    if ctx.workspace().join(".git").symlink_metadata().is_ok() {
        return Err("the workspace already has a .git".into());
    }
    let args = ["init", "--quiet", "--template=", "--initial-branch=main"];
    Git::without_repository(ctx).output(args).await?;
    Ok("initialized a git repository in the workspace; the branch is main".into())
}
