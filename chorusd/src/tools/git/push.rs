//! `git_push`: no setting of the workspace is in force while it reaches the network, only its objects are there.

use std::ffi::OsString;
use std::sync::Arc;

use chorus_proto::methods::send::Said;
use schemars::JsonSchema;
use serde::Deserialize;

use super::reach::reach;
use super::remote::{Address, address, written};
use super::run::{Git, command, variables};
use super::{Told, names, repository};
use crate::permissions::Action;
use crate::tools::Scene;
use crate::tools::tool::{Outcome, Tool};

/// A repository of its own that has nothing but the workspace's objects pushes one commit. `$1`: the hash, `$2`: the branch, `$3`: the address,
/// `$4`: the objects, `$5`: the kind of hash, `$6`: what receives; the settings of git follow.
const SCRIPT: &str = r#"
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

/// What receives a push at the other end. Where that is in the workspace it runs here, and heeds no setting there that names a program.
const RECEIVES: &str = "git-receive-pack";
const RECEIVES_HERE: &str = "git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.alternateRefsCommand=false \
    -c receive.denyCurrentBranch=refuse -c receive.denyDeleteCurrent=refuse -c receive.autogc=false -c gc.auto=0 -c maintenance.auto=false -c core.pager=cat receive-pack";

pub struct GitPush;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Such as `origin`.
    remote: String,
    branch: String,
}

impl Tool for GitPush {
    const NAME: &'static str = "git_push";
    const DESCRIPTION: &'static str = "Pushes a branch to a remote, never by force.";
    // A remote can be given another address.
    const ALWAYS: bool = false;
    type Params = Params;

    fn action(params: &Params, _: &Scene) -> Result<String, String> {
        names::remote(&params.remote)?;
        names::branch(&params.branch)?;
        Ok(Action::GitPush { remote: &params.remote, branch: &params.branch }.to_string())
    }

    async fn leads_to(params: &Params, scene: &Scene) -> Option<String> {
        let _alone = scene.world.git.of(scene.agent).await;
        let git = Git::new(scene).await.ok()?;
        let to = address(&written(&git, &params.remote).await.ok()?, &scene.workspace()).ok()?;
        Some(to.shown().to_string())
    }

    async fn run(params: Params, scene: Arc<Scene>) -> Outcome {
        push(&params, &scene).await.map_or_else(Outcome::error, Outcome::done)
    }
}

async fn push(Params { remote, branch }: &Params, scene: &Scene) -> Told<String> {
    let _alone = scene.world.git.of(scene.agent).await;
    let git = Git::new(scene).await?;
    let to = address(&written(&git, remote).await?, &scene.workspace())?;
    scene.still_leads_to(&to.shown().to_string())?;
    let named = format!("refs/heads/{branch}^{{commit}}");
    let commit = git.run(["rev-parse", "--verify", "--quiet", "--end-of-options", &named]).await?;
    let hash = commit.text.trim();
    let format = match hash.len() {
        _ if !commit.ok || !hash.chars().all(|c| c.is_ascii_hexdigit()) => None,
        40 => Some("sha1"),
        64 => Some("sha256"),
        _ => None,
    };
    let format = format.ok_or_else(|| format!("there is no branch {branch} with a commit; git_branch lists them"))?;
    let pin = match &to {
        Address::Network { scheme, url } => reach(scheme, url, scene).await?,
        Address::File(_) => None,
    };
    (scene.say)(Said::Note(format!("pushing {branch} to {}", to.shown())));
    let objects = repository(scene)?.join("objects");
    let url: OsString = match &to {
        Address::Network { url, .. } => url.into(),
        Address::File(path) => path.into(),
    };
    let receives = if matches!(to, Address::File(_)) { RECEIVES_HERE } else { RECEIVES };
    let mut argv: Vec<OsString> = ["sh", "-c", SCRIPT, "sh", hash, branch].map(Into::into).to_vec();
    argv.extend([url, objects.into(), format.into(), receives.into()]);
    argv.extend(git.settings().map(Into::into));
    argv.extend(["-c", "http.followRedirects=false", "-c", "protocol.file.allow=user"].map(Into::into));
    argv.extend(pin.iter().flat_map(|pin| ["-c", pin]).map(Into::into));
    let mut env: Vec<_> = variables().collect();
    env.push(("GIT_ALLOW_PROTOCOL".into(), to.protocol().into()));
    let network = matches!(to, Address::Network { .. });
    let said = command(scene, argv, env, network).await?;
    if said.ok {
        return Ok(format!("{branch} is pushed to {} ({hash})\n{}", to.shown(), said.text));
    }
    Err(format!("{branch} was not pushed to {}: {}", to.shown(), said.text))
}
