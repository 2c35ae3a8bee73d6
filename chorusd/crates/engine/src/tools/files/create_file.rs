//! The tool `create_file`: writes a whole file.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Edit, FileLocks, PathParam, Workspace, WorkspacePath, file_action, line_format, run_blocking};
use crate::tools::ToolContext;
use crate::tools::tool::{Tool, ToolOutcome};

pub(crate) struct CreateFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    path: PathParam,
    content: String,
}

impl Tool for CreateFile {
    const NAME: &'static str = "create_file";
    const DESCRIPTION: &'static str =
        "Writes a whole file in the workspace and replaces an existing one. Creates missing folders.";
    const IN_ORDER: bool = true;
    type Params = Params;

    fn action(params: &Params, ctx: &ToolContext) -> Result<String, String> {
        file_action(Self::NAME, &params.path, ctx)
    }

    async fn run(Params { path, content }: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        run_blocking(path, ctx, move |workspace, place, locks| workspace.create_file(place, content, locks)).await
    }
}

impl Workspace {
    /// Writes a whole file and returns the text for the model. Blocks.
    pub fn create_file(&self, place: &WorkspacePath, content: String, locks: &FileLocks) -> Result<String, String> {
        Edit { workspace: self, path: place, locks }.run(false, |old| {
            let held = format!(
                "{}, {}",
                line_format::format_count(line_format::count_lines(content.as_bytes()), "line"),
                format_bytes(content.len() as u64)
            );
            let told = match old {
                None => format!("created {place} ({held})"),
                Some(old) => format!("replaced {place} (now {held}; before {})", format_bytes(old.length)),
            };
            Ok((content.into_bytes(), told))
        })
    }
}

fn format_bytes(count: u64) -> String {
    line_format::format_count(count, "byte")
}
