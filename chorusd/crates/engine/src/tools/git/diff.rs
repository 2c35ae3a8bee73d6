//! The tool `git_diff`: shows changes.

use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::run::Git;
use super::{GitResult, ref_names};
use crate::tools::ToolContext;
use crate::tools::tool::{Tool, ToolOutcome};

pub(crate) struct GitDiff;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    #[serde(default)]
    path: Option<String>,
    /// Show staged changes instead of unstaged ones.
    #[serde(default)]
    staged: bool,
}

impl Tool for GitDiff {
    const NAME: &'static str = "git_diff";
    const DESCRIPTION: &'static str = "Shows changes since the last commit, and untracked files.";
    const USES_WORKSPACE: bool = true;
    type Params = Params;

    fn action(params: &Params, _: &ToolContext) -> Result<String, String> {
        params.path.iter().try_for_each(|path| ref_names::check_path(path))?;
        Ok(Action::Git { verb: "diff" }.to_string())
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        diff(params, &ctx).await.map_or_else(ToolOutcome::error, ToolOutcome::success)
    }
}

async fn diff(params: Params, ctx: &ToolContext) -> GitResult<String> {
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    let git = Git::new(ctx).await?;
    let path = params.path.as_deref().map(ref_names::literal_pathspec);
    let mut args = vec!["diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
    args.extend(params.staged.then_some("--cached"));
    args.push("--");
    args.extend(path.as_deref());
    let mut said = git.output_redacted(args).await?;
    if !params.staged {
        let mut args = vec!["ls-files", "--others", "--exclude-standard", "--"];
        args.extend(path.as_deref());
        let others = git.output_redacted(args).await?;
        if !others.is_empty() {
            said = [said.as_str(), "untracked:", &others].join("\n").trim_start().to_owned();
        }
    }
    Ok(if said.is_empty() { "no changes".into() } else { said })
}
