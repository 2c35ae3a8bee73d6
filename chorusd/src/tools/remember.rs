//! `remember`: something that the agent is to know in later conversations too.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::tool::{Outcome, Tool};
use super::{Scene, told};
use crate::permissions::Action;
use crate::store::catalog::NewMemory;

/// Bytes of what is remembered at once.
const LONGEST: usize = 2 << 10;

pub struct Remember;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// A sentence or two that can be understood by itself.
    text: String,
    /// The file in the workspace that it is about, if it is about one.
    #[serde(default)]
    path: Option<String>,
}

impl Tool for Remember {
    const NAME: &'static str = "remember";
    const DESCRIPTION: &'static str =
        "Remembers something for all your later conversations. You are shown the newest 20 (4 KiB of them).";
    type Params = Params;

    fn action(params: &Params, _: &Scene) -> Result<String, String> {
        if params.text.trim().is_empty() || params.text.len() > LONGEST || params.text.contains('\0') {
            return Err(format!("`text` must have a text of at most {LONGEST} bytes"));
        }
        if params.path.as_ref().is_some_and(|path| path.len() > 512 || path.chars().any(char::is_control)) {
            return Err("`path` is too long or has control characters in it".into());
        }
        Ok(Action::Other { tool: Self::NAME, argument: &params.text }.to_string())
    }

    async fn run(params: Params, scene: Arc<Scene>) -> Outcome {
        let text = scene.kept(params.text.trim().to_owned());
        let memory = NewMemory {
            agent: scene.agent,
            text: text.text,
            path: params.path.filter(|path| !path.is_empty()).map(|path| scene.kept(path).text),
            at: scene.world.clock.now(),
            user: scene.requester.to_string(),
        };
        match scene.world.store.catalog.remember(memory).await {
            Ok(()) => Outcome::done(format!("it is remembered; you are shown it from your next step on{}", text.note)),
            Err(failure) => told(failure),
        }
    }
}
