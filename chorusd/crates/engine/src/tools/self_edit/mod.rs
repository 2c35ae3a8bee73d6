//! Tools with which an agent changes itself. Changes apply from the next model call on.

mod docs;
mod docs_quota;
mod model;
mod permissions;
mod system_prompt;

use std::sync::Arc;

use super::host::{SelfEdit, ToolCaller};
use super::tool::ToolOutcome;
use super::{ToolContext, error_outcome};
pub(super) use docs::SelfEditDocs;
pub(super) use model::SelfEditModel;
pub(super) use permissions::SelfEditPermissions;
pub(super) use system_prompt::SelfEditSystemPrompt;

/// Limit on the length of a prompt, and of a note, in bytes.
const MAX_TEXT_LEN: usize = 64 << 10;

/// Checks that a text has no secret, for values that are stored and cannot be redacted without breaking them.
fn ensure_no_secret(text: &str, of: &str, ctx: &ToolContext) -> Result<(), String> {
    if ctx.has_secret(text) {
        return Err(format!("`{of}` contains a secret, which must not be stored there; remove it"));
    }
    Ok(())
}

/// Changes the agent's configuration through the tool host.
async fn apply_edit(ctx: Arc<ToolContext>, action: String, edit: SelfEdit, done: String) -> ToolOutcome {
    let Some(outside) = ctx.services.host() else { return ToolOutcome::error("the daemon is not ready") };
    match outside.self_edit(ToolCaller::new(&ctx, action), edit).await {
        Ok(()) => ToolOutcome::success(done),
        Err(failure) => error_outcome(failure),
    }
}
