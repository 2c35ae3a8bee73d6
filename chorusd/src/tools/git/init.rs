//! `git_init`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Told;
use super::run::Git;
use crate::permissions::Action;
use crate::tools::Scene;
use crate::tools::tool::{Outcome, Tool};

pub struct GitInit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

impl Tool for GitInit {
    const NAME: &'static str = "git_init";
    const DESCRIPTION: &'static str = "Makes the workspace a git repository.";
    type Params = Params;

    fn action(_: &Params, _: &Scene) -> Result<String, String> {
        Ok(Action::Git { verb: "init" }.to_string())
    }

    async fn run(_: Params, scene: Arc<Scene>) -> Outcome {
        init(&scene).await.map_or_else(Outcome::error, Outcome::done)
    }
}

async fn init(scene: &Scene) -> Told<String> {
    let _alone = scene.world.git.of(scene.agent).await;
    if scene.workspace().join(".git").symlink_metadata().is_ok() {
        return Err("the workspace has a .git already".into());
    }
    let args = ["init", "--quiet", "--template=", "--initial-branch=main"];
    Git::anywhere(scene).done(args).await?;
    Ok("the workspace is a git repository now; its branch is main".into())
}
