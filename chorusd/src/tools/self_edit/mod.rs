//! Tools by which an agent changes itself. What they change holds from the next call of the model on.

mod docs;
mod model;
mod permissions;
mod quota;
mod system_prompt;

use std::sync::Arc;

pub use docs::SelfEditDocs;
pub use model::SelfEditModel;
pub use permissions::SelfEditPermissions;
pub use system_prompt::SelfEditSystemPrompt;

use super::host::{SelfEdit, ToolCaller};
use super::tool::ToolOutcome;
use super::{ToolContext, error_outcome};

/// Bytes of a prompt, and of a note.
const MAX_TEXT_LEN: usize = 64 << 10;

/// That there is no secret in what works only as it is, and is kept.
fn ensure_no_secret(text: &str, of: &str, scene: &ToolContext) -> Result<(), String> {
    if scene.has_secret(text) {
        return Err(format!("there is a secret in `{of}`, and none may be kept there; leave it out"));
    }
    Ok(())
}

/// Has the rest of the daemon change the agent's configuration.
async fn apply_edit(scene: Arc<ToolContext>, action: String, edit: SelfEdit, done: String) -> ToolOutcome {
    let Some(outside) = scene.services.host() else { return ToolOutcome::error("the daemon is not ready for that") };
    match outside.self_edit(ToolCaller::new(&scene, action), edit).await {
        Ok(()) => ToolOutcome::success(done),
        Err(failure) => error_outcome(failure),
    }
}
