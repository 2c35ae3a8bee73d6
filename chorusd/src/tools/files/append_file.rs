//! `append_file`: more at the end of a file.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Edit, Locks, Place, Target, Workspace, action, lines, on_files};
use crate::tools::Scene;
use crate::tools::tool::{Outcome, Tool};

pub struct AppendFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    path: Target,
    /// Added as it is: a line ends with a newline of its own.
    content: String,
}

impl Tool for AppendFile {
    const NAME: &'static str = "append_file";
    const DESCRIPTION: &'static str = "Adds to the end of a file in the workspace, or makes it.";
    const IN_ORDER: bool = true;
    type Params = Params;

    fn action(params: &Params, scene: &Scene) -> Result<String, String> {
        action(Self::NAME, &params.path, scene)
    }

    async fn run(Params { path, content }: Params, scene: Arc<Scene>) -> Outcome {
        on_files(path, scene, move |workspace, place, locks| workspace.append(place, &content, locks)).await
    }
}

impl Workspace {
    /// Adds to a file; returns what is told of it. Blocks.
    ///
    /// # Errors
    /// Why nothing was written.
    pub fn append(&self, place: &Place, content: &str, locks: &Locks) -> Result<String, String> {
        Edit { workspace: self, place, locks }.run(true, |old| {
            let mut bytes = old.map(|old| old.bytes.clone()).unwrap_or_default();
            bytes.extend_from_slice(content.as_bytes());
            let (more, now) = (content.len() as u64, bytes.len() as u64);
            let held = lines::of(lines::count(&bytes), "line");
            let made = if old.is_none() { "is made and " } else { "" };
            let told =
                format!("{place} {made}has {} more: {held}, {} now", lines::of(more, "byte"), lines::of(now, "byte"));
            Ok((bytes, told))
        })
    }
}
