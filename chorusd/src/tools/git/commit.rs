//! `git_commit`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::run::Git;
use super::{Told, names};
use crate::permissions::Action;
use crate::tools::Scene;
use crate::tools::tool::{Outcome, Tool};

/// Bytes of a message.
const LONGEST: usize = 16 << 10;

pub struct GitCommit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    message: String,
    /// Files and directories of the workspace; all changes where none is given.
    #[serde(default)]
    paths: Vec<String>,
}

impl Tool for GitCommit {
    const NAME: &'static str = "git_commit";
    const DESCRIPTION: &'static str = "Commits changes of the workspace, new and deleted files included: all of them, or those below the given paths.";
    type Params = Params;

    fn action(params: &Params, _: &Scene) -> Result<String, String> {
        if params.message.trim().is_empty() || params.message.len() > LONGEST || params.message.contains('\0') {
            return Err(format!("`message` must have a text of at most {LONGEST} bytes"));
        }
        if params.paths.len() > 1000 {
            return Err("more than 1000 paths are too many; give directories".into());
        }
        params.paths.iter().try_for_each(|path| names::path(path))?;
        Ok(Action::Git { verb: "commit" }.to_string())
    }

    async fn run(params: Params, scene: Arc<Scene>) -> Outcome {
        commit(params, &scene).await.map_or_else(Outcome::error, Outcome::done)
    }
}

async fn commit(params: Params, scene: &Scene) -> Told<String> {
    let _alone = scene.world.git.of(scene.agent).await;
    let git = Git::new(scene).await?;
    let behind = |args: &[&str]| -> Vec<String> {
        let mut args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        if !params.paths.is_empty() {
            args.push("--".into());
            args.extend(params.paths.iter().cloned());
        }
        args
    };
    git.done(behind(&["add", "--all"])).await?;
    let message = format!("--message={}", params.message);
    let said = git.run(behind(&["commit", "--no-verify", "--no-gpg-sign", "--no-status", &message])).await?;
    if said.ok { Ok(said.text) } else { Err(format!("nothing was committed: {}", said.text)) }
}
