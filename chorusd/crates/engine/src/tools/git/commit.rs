//! The tool `git_commit`: commits changes.

use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::run::Git;
use super::{GitResult, ref_names};
use crate::tools::ToolContext;
use crate::tools::tool::{Tool, ToolOutcome};

/// Limit on the length of a message, in bytes.
const MAX_MESSAGE_LEN: usize = 16 << 10;

/// The message for the model if git prints names that are not plain.
const UNREADABLE_NAMES: &str =
    "the workspace contains nested repositories with names that git tools cannot handle; use git in bash";

pub(crate) struct GitCommit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    message: String,
    /// Paths to commit. Default: all changes.
    #[serde(default)]
    paths: Vec<String>,
}

impl Tool for GitCommit {
    const NAME: &'static str = "git_commit";
    const DESCRIPTION: &'static str = "Commits changes, including new and deleted files.";
    const USES_WORKSPACE: bool = true;
    type Params = Params;

    fn action(params: &Params, _: &ToolContext) -> Result<String, String> {
        if params.message.trim().is_empty() || params.message.len() > MAX_MESSAGE_LEN || params.message.contains('\0') {
            return Err(format!("`message` must be a non-empty text of at most {MAX_MESSAGE_LEN} bytes"));
        }
        if params.paths.len() > 1000 {
            return Err("too many paths (at most 1000); pass directories instead".into());
        }
        params.paths.iter().try_for_each(|path| ref_names::check_path(path))?;
        Ok(Action::Git { verb: "commit" }.to_string())
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        commit(params, &ctx).await.map_or_else(ToolOutcome::error, ToolOutcome::success)
    }
}

async fn commit(params: Params, ctx: &ToolContext) -> GitResult<String> {
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    let git = Git::new(ctx).await?;
    let paths: Vec<String> = params.paths.iter().map(|path| ref_names::literal_pathspec(path)).collect();
    if !stage_changes(&git, &paths).await? {
        return Err("nothing to commit: no changes".into());
    }
    commit_staged(&git, &params.message, paths).await
}

/// Stages all changes of these paths, or of the workspace if there are none. Returns true if there is something to
/// commit.
pub(super) async fn stage_changes(git: &Git<'_>, paths: &[String]) -> GitResult<bool> {
    let all = if paths.is_empty() { vec![":(top)".to_owned()] } else { paths.to_vec() };
    let others = exclude_nested_repositories(git).await?;
    git.output([to_owned_args(&["add", "--all", "--"]), all.clone(), others].concat()).await?;
    // Without anything to commit, `git commit` would examine nested repositories to explain why.
    let same = ["diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--"];
    Ok(!git.run([to_owned_args(&same), all].concat()).await?.ok)
}

/// Commits the staged changes of these paths, or all, and names the conversation unless it is `main`. Returns git's
/// output.
pub(super) async fn commit_staged(git: &Git<'_>, message: &str, paths: Vec<String>) -> GitResult<String> {
    let message = format!("--message={}", add_conversation(message, git.conversation_name()));
    let mut args = to_owned_args(&["commit", "--allow-empty", "--no-verify", "--no-gpg-sign", "--no-status", &message]);
    if !paths.is_empty() {
        args.push("--".into());
        args.extend(paths);
    }
    let said = git.run(args).await?;
    if said.ok { Ok(said.text) } else { Err(format!("nothing was committed: {}", said.text)) }
}

/// Returns the message with a trailer that names the conversation.
fn add_conversation(message: &str, conversation: Option<&str>) -> String {
    let Some(name) = conversation else { return message.to_owned() };
    let message = message.trim_end();
    let is_trailer = |line: &str| {
        let key = line.split_once(": ").map_or("", |(key, _)| key);
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let has_trailers = message.rsplit_once("\n\n").is_some_and(|(_, last)| last.lines().all(is_trailer));
    let gap = if has_trailers { "\n" } else { "\n\n" };
    format!("{message}{gap}Conversation: {name}")
}

fn to_owned_args(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

/// Returns pathspecs that exclude the nested repositories recorded in the index: to detect changes in them, git would
/// use their configuration, which was not checked.
async fn exclude_nested_repositories(git: &Git<'_>) -> GitResult<Vec<String>> {
    let outside = |path: String| {
        // Unusual names are quoted.
        let plain = !path.starts_with('"');
        plain.then(|| format!(":(exclude,top,literal){path}")).ok_or_else(|| UNREADABLE_NAMES.to_owned())
    };
    nested_repositories(git).await?.into_iter().map(outside).collect()
}

/// Lists nested repositories as git prints them: unusual names in quotes.
pub(super) async fn nested_repositories(git: &Git<'_>) -> GitResult<Vec<String>> {
    const SCRIPT: &str = "git \"$@\" ls-files --stage | grep '^160000 '; :";
    let said = git.run_script(SCRIPT).await?;
    let path = |line: &str| {
        let path = line.strip_prefix("160000 ").and_then(|rest| rest.split_once('\t')).map(|(_, path)| path.to_owned());
        path.ok_or_else(|| UNREADABLE_NAMES.to_owned())
    };
    said.text.lines().map(path).collect()
}
