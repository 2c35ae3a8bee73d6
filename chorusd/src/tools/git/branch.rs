//! `git_branch`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::run::Git;
use super::{Told, names};
use crate::permissions::Action;
use crate::tools::Scene;
use crate::tools::tool::{Outcome, Tool};

pub struct GitBranch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    #[serde(default)]
    name: Option<String>,
}

impl Tool for GitBranch {
    const NAME: &'static str = "git_branch";
    const DESCRIPTION: &'static str = "Makes a branch without changing to it; without a name, lists the branches.";
    type Params = Params;

    fn action(params: &Params, _: &Scene) -> Result<String, String> {
        Ok(match &params.name {
            None => Action::Git { verb: "branch" }.to_string(),
            Some(name) => {
                names::branch(name)?;
                Action::GitBranch { name }.to_string()
            }
        })
    }

    async fn run(params: Params, scene: Arc<Scene>) -> Outcome {
        branch(params, &scene).await.map_or_else(Outcome::error, Outcome::done)
    }
}

async fn branch(params: Params, scene: &Scene) -> Told<String> {
    let _alone = scene.world.git.of(scene.agent).await;
    let git = Git::new(scene).await?;
    match params.name {
        Some(name) => {
            git.done(["branch", "--no-track", "--", &name]).await?;
            Ok(format!("the branch {name} is made"))
        }
        None => {
            let said = git.done(["branch", "--list", "--no-column", "--format=%(HEAD) %(refname:short)"]).await?;
            Ok(if said.is_empty() { "there are no branches yet: nothing was committed".into() } else { said })
        }
    }
}
