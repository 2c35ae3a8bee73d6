//! `git_checkout`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::run::Git;
use super::{Told, names};
use crate::permissions::Action;
use crate::tools::Scene;
use crate::tools::tool::{Outcome, Tool};

pub struct GitCheckout;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    branch: String,
    /// Makes it first.
    #[serde(default)]
    create: bool,
}

impl Tool for GitCheckout {
    const NAME: &'static str = "git_checkout";
    const DESCRIPTION: &'static str = "Changes to a branch. Changes that are not committed go along, or it is refused.";
    type Params = Params;

    fn action(params: &Params, _: &Scene) -> Result<String, String> {
        names::branch(&params.branch)?;
        Ok(Action::GitCheckout { name: &params.branch }.to_string())
    }

    async fn run(params: Params, scene: Arc<Scene>) -> Outcome {
        checkout(params, &scene).await.map_or_else(Outcome::error, Outcome::done)
    }
}

async fn checkout(params: Params, scene: &Scene) -> Told<String> {
    let _alone = scene.world.git.of(scene.agent).await;
    let git = Git::new(scene).await?;
    let branch = params.branch.as_str();
    if params.create {
        git.done(["checkout", "--quiet", "--no-track", "--no-recurse-submodules", "-b", branch, "--"]).await?;
        return Ok(format!("on the new branch {branch}"));
    }
    // A tag or a commit of that name is none.
    let known = git.run(["show-ref", "--verify", "--quiet", &format!("refs/heads/{branch}")]).await?;
    if !known.ok {
        return Err(format!("there is no branch {branch}; git_branch lists them, `create` makes it"));
    }
    git.done(["checkout", "--quiet", "--no-guess", "--no-recurse-submodules", branch, "--"]).await?;
    Ok(format!("on the branch {branch}"))
}
