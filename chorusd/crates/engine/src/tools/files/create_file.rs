//! The tool `create_file`: writes a whole file.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Edit, EditKind, FileAccess, FileLocks, PathParam, Workspace, WorkspacePath, file_action, line_format, run_blocking,
};
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
    const USES_WORKSPACE: bool = true;
    type Params = Params;

    fn action(params: &Params, ctx: &ToolContext) -> Result<String, String> {
        file_action(Self::NAME, &params.path, ctx)
    }

    async fn run(Params { path, content }: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        run_blocking(path, ctx, async move |workspace, place, access| {
            workspace.create_file_as(place, content, access).await
        })
        .await
    }
}

impl Workspace {
    /// Writes a whole file and returns the text for the model. Blocks.
    pub fn create_file(&self, place: &WorkspacePath, content: String, locks: &FileLocks) -> Result<String, String> {
        chorus_runtime::block_on(self.create_file_as(place, content, &locks.into()))
    }

    /// Like [`Workspace::create_file`], unless another conversation than that in `access` changed the file meanwhile.
    pub(super) async fn create_file_as(
        &self,
        place: &WorkspacePath,
        content: String,
        access: &FileAccess<'_>,
    ) -> Result<String, String> {
        let edit = Edit { workspace: self, path: place, access };
        edit.run(EditKind::Replace, |old| {
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
        .await
    }
}

fn format_bytes(count: u64) -> String {
    line_format::format_count(count, "byte")
}
