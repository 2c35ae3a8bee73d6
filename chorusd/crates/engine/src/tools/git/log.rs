//! The tool `git_log`: lists commits.

use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::GitResult;
use super::run::Git;
use crate::tools::ToolContext;
use crate::tools::tool::{Tool, ToolOutcome};

/// Limit on the commits listed.
const MAX_COMMITS: u32 = 200;

pub(crate) struct GitLog;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Default 10, at most 200.
    #[serde(default)]
    count: Option<u32>,
}

impl Tool for GitLog {
    const NAME: &'static str = "git_log";
    const DESCRIPTION: &'static str = "Lists the newest commits of the branch.";
    const USES_WORKSPACE: bool = true;
    type Params = Params;

    fn action(_: &Params, _: &ToolContext) -> Result<String, String> {
        Ok(Action::Git { verb: "log" }.to_string())
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        log(params, &ctx).await.map_or_else(ToolOutcome::error, ToolOutcome::success)
    }
}

async fn log(params: Params, ctx: &ToolContext) -> GitResult<String> {
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    let git = Git::new(ctx).await?;
    if !git.run(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await?.ok {
        return Ok("no commits yet".into());
    }
    let count = format!("--max-count={}", params.count.unwrap_or(10).clamp(1, MAX_COMMITS));
    let format = "--format=%h %ad %an: %s";
    let plain = ["log", "--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-mailmap", "--no-decorate"];
    git.output_redacted(plain.into_iter().chain([
        "--no-patch",
        "--date=format:%Y-%m-%d %H:%M",
        format,
        &count,
        "HEAD",
        "--",
    ]))
    .await
}
