//! The tool `append_file`: adds text to the end of a file.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Edit, EditKind, FileAccess, FileLocks, PathParam, Workspace, WorkspacePath, file_action, line_format, run_blocking,
};
use crate::tools::ToolContext;
use crate::tools::tool::{Tool, ToolOutcome};

pub(crate) struct AppendFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    path: PathParam,
    /// Appended unchanged: include the newline at the end of each line.
    content: String,
}

impl Tool for AppendFile {
    const NAME: &'static str = "append_file";
    const DESCRIPTION: &'static str = "Appends to a file in the workspace. Creates the file if it does not exist.";
    const IN_ORDER: bool = true;
    const USES_WORKSPACE: bool = true;
    type Params = Params;

    fn action(params: &Params, ctx: &ToolContext) -> Result<String, String> {
        file_action(Self::NAME, &params.path, ctx)
    }

    async fn run(Params { path, content }: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        run_blocking(path, ctx, async move |workspace, place, access| {
            workspace.append_file_as(place, &content, access).await
        })
        .await
    }
}

impl Workspace {
    /// Appends to a file and returns the text for the model. Blocks.
    pub fn append_file(&self, place: &WorkspacePath, content: &str, locks: &FileLocks) -> Result<String, String> {
        chorus_runtime::block_on(self.append_file_as(place, content, &locks.into()))
    }

    /// Like [`Workspace::append_file`], for the conversation in `access`. Nothing is lost of what others wrote.
    pub(super) async fn append_file_as(
        &self,
        place: &WorkspacePath,
        content: &str,
        access: &FileAccess<'_>,
    ) -> Result<String, String> {
        let edit = Edit { workspace: self, path: place, access };
        edit.run(EditKind::Append, |old| {
            let mut bytes = old.map(|old| old.bytes.clone()).unwrap_or_default();
            bytes.extend_from_slice(content.as_bytes());
            let (more, now) = (content.len() as u64, bytes.len() as u64);
            let held = line_format::format_count(line_format::count_lines(&bytes), "line");
            let done = if old.is_none() { "created" } else { "appended to" };
            let told = format!(
                "{done} {place}: added {}, now {held}, {}",
                line_format::format_count(more, "byte"),
                line_format::format_count(now, "byte")
            );
            Ok((bytes, told))
        })
        .await
    }
}
