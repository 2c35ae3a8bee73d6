//! The tool `git_push`. No configuration of the workspace applies while git accesses the network; only the workspace's
//! objects are available.

use std::ffi::OsString;
use std::sync::Arc;

use chorus_permissions::Action;
use chorus_proto::methods::send::TurnEvent;
use schemars::JsonSchema;
use serde::Deserialize;

use super::network_policy::check_host;
use super::remote_address::{RemoteAddress, parse_address, push_url};
use super::run::{Git, run_in_sandbox, variables};
use super::{GitResult, ref_names, repository_dirs};
use crate::tools::ToolContext;
use crate::tools::tool::{Tool, ToolOutcome};

/// Pushes one commit from a temporary repository that has only the workspace's objects. Arguments: `$1` the commit,
/// `$2` the branch, `$3` the URL, `$4` the objects directory, `$5` the hash format, `$6` the receiving command; git
/// settings follow.
const PUSH_SCRIPT: &str = r#"
set -eu
commit=$1 branch=$2 url=$3 objects=$4 format=$5 receive=$6
shift 6
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
git "$@" init --quiet --bare --template= --object-format="$format" -- "$dir/push"
GIT_DIR="$dir/push" GIT_OBJECT_DIRECTORY="$objects" \
    git --no-pager "$@" push --no-verify --no-signed --recurse-submodules=no --receive-pack="$receive" \
    -- "$url" "$commit:refs/heads/$branch"
"#;

/// The receiving command. For a repository in the workspace it runs here, with settings that override any that name
/// programs.
const RECEIVE_PACK: &str = "git-receive-pack";
const LOCAL_RECEIVE_PACK: &str = "git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.alternateRefsCommand=false \
    -c receive.denyCurrentBranch=refuse -c receive.denyDeleteCurrent=refuse -c receive.autogc=false -c gc.auto=0 -c maintenance.auto=false -c core.pager=cat receive-pack";

pub(crate) struct GitPush;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// For example `origin`.
    remote: String,
    branch: String,
}

impl Tool for GitPush {
    const NAME: &'static str = "git_push";
    const DESCRIPTION: &'static str = "Pushes a branch to a remote, never with force.";
    // The workspace can change the URL of a remote.
    const CAN_APPROVE_ALWAYS: bool = false;
    const USES_WORKSPACE: bool = true;
    type Params = Params;

    fn action(params: &Params, _: &ToolContext) -> Result<String, String> {
        ref_names::check_remote(&params.remote)?;
        ref_names::check_branch(&params.branch)?;
        Ok(Action::GitPush { remote: &params.remote, branch: &params.branch }.to_string())
    }

    async fn effective_target(params: &Params, ctx: &ToolContext) -> Option<String> {
        let _alone = ctx.services.git_locks.lock(ctx.agent).await;
        let git = Git::new(ctx).await.ok()?;
        let to = parse_address(&push_url(&git, &params.remote).await.ok()?, &ctx.workspace()).ok()?;
        Some(to.without_credentials().to_string())
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        push(&params, &ctx).await.map_or_else(ToolOutcome::error, ToolOutcome::success)
    }
}

async fn push(Params { remote, branch }: &Params, ctx: &ToolContext) -> GitResult<String> {
    let _alone = ctx.services.git_locks.lock(ctx.agent).await;
    let git = Git::new(ctx).await?;
    let to = parse_address(&push_url(&git, remote).await?, &ctx.workspace())?;
    ctx.check_target_unchanged(&to.without_credentials().to_string())?;
    let named = format!("refs/heads/{branch}^{{commit}}");
    let commit = git.run(["rev-parse", "--verify", "--quiet", "--end-of-options", &named]).await?;
    let hash = commit.text.trim();
    let format = match hash.len() {
        _ if !commit.ok || !hash.chars().all(|c| c.is_ascii_hexdigit()) => None,
        40 => Some("sha1"),
        64 => Some("sha256"),
        _ => None,
    };
    let format = format.ok_or_else(|| format!("no branch {branch} with a commit; list branches with git_branch"))?;
    let pin = match &to {
        RemoteAddress::Network { scheme, url } => check_host(scheme, url, ctx).await?,
        RemoteAddress::File(_) => None,
    };
    (ctx.emit_event)(TurnEvent::Note(format!("pushing {branch} to {}", to.without_credentials())));
    let objects = repository_dirs(ctx)?.common_dir.join("objects");
    let url: OsString = match &to {
        RemoteAddress::Network { url, .. } => url.into(),
        RemoteAddress::File(path) => path.into(),
    };
    let receives = if matches!(to, RemoteAddress::File(_)) { LOCAL_RECEIVE_PACK } else { RECEIVE_PACK };
    let mut argv: Vec<OsString> = ["sh", "-c", PUSH_SCRIPT, "sh", hash, branch].map(Into::into).to_vec();
    argv.extend([url, objects.into(), format.into(), receives.into()]);
    argv.extend(git.settings().map(Into::into));
    argv.extend(["-c", "http.followRedirects=false", "-c", "protocol.file.allow=user"].map(Into::into));
    argv.extend(pin.iter().flat_map(|pin| ["-c", pin]).map(Into::into));
    let mut env: Vec<_> = variables().collect();
    env.push(("GIT_ALLOW_PROTOCOL".into(), to.protocol().into()));
    let network = matches!(to, RemoteAddress::Network { .. });
    let said = run_in_sandbox(ctx, argv, env, network).await?;
    if said.ok {
        return Ok(format!("pushed {branch} to {} ({hash})\n{}", to.without_credentials(), said.text));
    }
    Err(format!("cannot push {branch} to {}: {}", to.without_credentials(), said.text))
}
