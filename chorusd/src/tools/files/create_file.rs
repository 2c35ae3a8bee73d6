//! `create_file`: a whole file.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Edit, Locks, Place, Target, Workspace, action, lines, on_files};
use crate::tools::Scene;
use crate::tools::tool::{Outcome, Tool};

pub struct CreateFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    path: Target,
    content: String,
}

impl Tool for CreateFile {
    const NAME: &'static str = "create_file";
    const DESCRIPTION: &'static str =
        "Writes a whole file in the workspace, replacing one that is there. Missing folders are made.";
    const IN_ORDER: bool = true;
    type Params = Params;

    fn action(params: &Params, scene: &Scene) -> Result<String, String> {
        action(Self::NAME, &params.path, scene)
    }

    async fn run(Params { path, content }: Params, scene: Arc<Scene>) -> Outcome {
        on_files(path, scene, move |workspace, place, locks| workspace.create(place, content, locks)).await
    }
}

impl Workspace {
    /// Writes a whole file; returns what is told of it. Blocks.
    ///
    /// # Errors
    /// Why nothing was written.
    pub fn create(&self, place: &Place, content: String, locks: &Locks) -> Result<String, String> {
        Edit { workspace: self, place, locks }.run(false, |old| {
            let held =
                format!("{}, {}", lines::of(lines::count(content.as_bytes()), "line"), bytes(content.len() as u64));
            let told = match old {
                None => format!("{place} is made: {held}"),
                Some(old) => format!("{place} is replaced: {held} now, {} before", bytes(old.length)),
            };
            Ok((content.into_bytes(), told))
        })
    }
}

fn bytes(count: u64) -> String {
    lines::of(count, "byte")
}
