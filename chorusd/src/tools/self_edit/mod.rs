//! Tools by which an agent changes itself. What they change holds from the next call of the model on.

mod docs;
mod model;
mod permissions;
mod room;
mod system_prompt;

use std::sync::Arc;

pub use docs::SelfEditDocs;
pub use model::SelfEditModel;
pub use permissions::SelfEditPermissions;
pub use system_prompt::SelfEditSystemPrompt;

use super::outside::{Asker, SelfEdit};
use super::tool::Outcome;
use super::{Scene, told};

/// Bytes of a prompt, and of a note.
const LONGEST: usize = 64 << 10;

/// That there is no secret in what works only as it is, and is kept.
fn without_secret(text: &str, of: &str, scene: &Scene) -> Result<(), String> {
    if scene.has_secret(text) {
        return Err(format!("there is a secret in `{of}`, and none may be kept there; leave it out"));
    }
    Ok(())
}

/// Has the rest of the daemon change the agent's configuration.
async fn edit(scene: Arc<Scene>, action: String, edit: SelfEdit, done: String) -> Outcome {
    let Some(outside) = scene.world.outside() else { return Outcome::error("the daemon is not ready for that") };
    match outside.self_edit(Asker::new(&scene, action), edit).await {
        Ok(()) => Outcome::done(done),
        Err(failure) => told(failure),
    }
}
