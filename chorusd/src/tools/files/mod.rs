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

use std::sync::Arc;

use target::Target;

use super::Scene;
use super::tool::Outcome;
use crate::permissions::Action;

/// The one string that the use of a file is judged by: with the very path that is opened.
fn action(tool: &str, path: &Target, scene: &Scene) -> Result<String, String> {
    let place = path.place(scene)?;
    Ok(Action::File { tool, path: &place.to_string() }.to_string())
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
