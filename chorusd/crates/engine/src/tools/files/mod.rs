//! The file tools. Paths are normalised once and opened beneath a held directory of the workspace.

mod access;
pub(super) mod append_file;
mod atomic_write;
pub(super) mod create_file;
mod line_format;
mod path_param;
pub(super) mod str_replace;
mod temp_names;
mod versions;
pub(super) mod view;
mod workspace;
mod workspace_path;

use std::path::Path;
use std::sync::Arc;

use chorus_permissions::{Action, WorkspacePaths};

use super::ToolContext;
use super::tool::{Tool as _, ToolOutcome};
use crate::KeyedMutex;
use access::FileAccess;
use append_file::AppendFile;
pub use atomic_write::Edit;
use atomic_write::EditKind;
use create_file::CreateFile;
use path_param::PathParam;
use str_replace::StrReplace;
pub(super) use versions::ConversationFiles;
pub use versions::{CommandGuard, ConversationNames, FileVersions};
pub use view::LineRange;
use view::View;
pub use workspace::{OpenEntry, Workspace};
pub use workspace_path::WorkspacePath;

/// Admits one writer per file at a time, across calls, turns and agents. The key is the device and inode of the folder,
/// because two paths may lead to one workspace, and the name of the file.
pub type FileLocks = KeyedMutex<(u64, u64, String)>;

/// Returns the action of a file tool, with exactly the path that the tool opens.
fn file_action(tool: &str, path: &PathParam, ctx: &ToolContext) -> Result<String, String> {
    let place = path.resolve(ctx)?;
    Ok(Action::File { tool, path: &place.to_string() }.to_string())
}

/// Returns the absolute paths by which a command may name a workspace. Resolves links on the disk.
#[must_use]
pub fn workspace_paths(workspace: &Path) -> WorkspacePaths {
    WorkspacePaths::new([Some(workspace.to_owned()), workspace.canonicalize().ok()].into_iter().flatten())
}

/// Returns the action of a file tool with the path that the tool would open; `None` if it is not such an action, or if
/// the tool would refuse the path.
#[must_use]
pub fn normalize_file_action(action: &str, workspace: &Path) -> Option<String> {
    let (tool, path) = action.strip_prefix("tool:")?.split_once(':')?;
    let tools = [AppendFile::NAME, CreateFile::NAME, StrReplace::NAME, View::NAME];
    let place = WorkspacePath::parse(path, workspace).ok().filter(|_| tools.contains(&tool))?;
    Some(Action::File { tool, path: &place.to_string() }.to_string())
}

/// Runs a file operation in a blocking thread.
async fn run_blocking(
    path: PathParam,
    ctx: Arc<ToolContext>,
    work: impl AsyncFnOnce(&Workspace, &WorkspacePath, &FileAccess<'_>) -> Result<String, String> + Send + 'static,
) -> ToolOutcome {
    let done = chorus_runtime::spawn_blocking(move || {
        let place = path.resolve(&ctx)?;
        let conversation = ctx.conversation_files();
        let access = FileAccess { locks: &ctx.services.file_locks, conversation };
        chorus_runtime::block_on(work(&Workspace::open(&ctx.workspace())?, place, &access))
    });
    match done.await {
        Ok(Ok(text)) => ToolOutcome::success(text),
        Ok(Err(wrong)) => ToolOutcome::error(wrong),
        Err(e) => ToolOutcome::error(format!("the tool failed: {e}")),
    }
}
