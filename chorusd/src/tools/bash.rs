//! `bash`: runs a command in the workspace.

use std::ffi::OsString;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::tool::{Outcome, Tool};
use super::{Scene, background};
use crate::permissions::Action;
use crate::sandbox::{Confinement, Exit, Job, Limits, run};

pub struct Bash;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The command, for bash.
    pub command: String,
    /// Start it and go on: for what takes minutes. A message tells when it has ended.
    #[serde(default)]
    pub background: bool,
}

impl Tool for Bash {
    const NAME: &'static str = "bash";
    const DESCRIPTION: &'static str = "Runs a command of bash in the workspace and returns what it prints. With `background` it goes on beside the conversation.";
    type Params = Params;

    fn action(params: &Params, _: &Scene) -> Result<String, String> {
        if params.command.trim().is_empty() || params.command.contains('\0') {
            return Err("the command is empty or holds a NUL".into());
        }
        Ok(Action::Bash { command: &params.command }.to_string())
    }

    async fn run(params: Params, scene: Arc<Scene>) -> Outcome {
        if params.background {
            return background::start(params.command, &scene).await;
        }
        let argv = ["bash", "--noprofile", "--norc", "-c", &params.command].map(OsString::from);
        let network = scene.profile.network();
        let confinement = Confinement { workspace: scene.workspace(), network, limits: Limits::default() };
        let job = Job { argv: argv.to_vec(), env: Vec::new(), confinement };
        match run(&scene.world.sandbox, &job, &scene.cancel).await {
            Ok(ran) if ran.exit == Exit::Code(0) && !ran.cancelled => Outcome::done(ran.output),
            Ok(ran) => Outcome::error(format!("{}\n[{:?}]", ran.output, ran.exit)),
            Err(e) => Outcome::error(format!("it was not started: {e}")),
        }
    }
}
