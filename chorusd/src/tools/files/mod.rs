//! The file tools, and how they reach a workspace: by paths that are cleaned once, beneath a held directory.

pub mod append_file;
mod beside;
pub mod create_file;
mod edit;
mod lines;
mod locks;
mod place;
pub mod str_replace;
mod target;
pub mod view;
mod workspace;

pub use edit::Edit;
pub use locks::Locks;
pub use place::Place;
pub use view::Range;
pub use workspace::Workspace;

use std::path::Path;
use std::sync::Arc;

use append_file::AppendFile;
use create_file::CreateFile;
use str_replace::StrReplace;
use target::Target;
use view::View;

use super::Scene;
use super::tool::{Outcome, Tool as _};
use crate::permissions::{Action, WorkspacePaths};

/// The one string that the use of a file is judged by: with the very path that is opened.
fn action(tool: &str, path: &Target, scene: &Scene) -> Result<String, String> {
    let place = path.place(scene)?;
    Ok(Action::File { tool, path: &place.to_string() }.to_string())
}

/// Lists the absolute paths by which a command may name a workspace. Reads links.
#[must_use]
pub fn workspace_paths(workspace: &Path) -> WorkspacePaths {
    WorkspacePaths::new([Some(workspace.to_owned()), workspace.canonicalize().ok()].into_iter().flatten())
}

/// Returns the action of a file tool with the path that the tool would open; `None` if it is no such action, or the tool
/// would refuse the path.
#[must_use]
pub fn cleaned_action(action: &str, workspace: &Path) -> Option<String> {
    let (tool, path) = action.strip_prefix("tool:")?.split_once(':')?;
    let tools = [AppendFile::NAME, CreateFile::NAME, StrReplace::NAME, View::NAME];
    let place = Place::read(path, workspace).ok().filter(|_| tools.contains(&tool))?;
    Some(Action::File { tool, path: &place.to_string() }.to_string())
}

/// Does what reads or writes files, on a thread that may wait for them.
async fn on_files(
    path: Target,
    scene: Arc<Scene>,
    work: impl FnOnce(&Workspace, &Place, &Locks) -> Result<String, String> + Send + 'static,
) -> Outcome {
    let done = tokio::task::spawn_blocking(move || {
        let place = path.place(&scene)?;
        work(&Workspace::open(&scene.workspace())?, place, &scene.world.locks)
    });
    match done.await {
        Ok(Ok(text)) => Outcome::done(text),
        Ok(Err(wrong)) => Outcome::error(wrong),
        Err(e) => Outcome::error(format!("the tool failed: {e}")),
    }
}
