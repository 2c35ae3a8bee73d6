//! The tool `self_edit_system_prompt`: replaces the agent's system prompt.

use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{MAX_TEXT_LEN, apply_edit};
use crate::tools::ToolContext;
use crate::tools::host::SelfEdit;
use crate::tools::tool::{Tool, ToolOutcome};

pub(crate) struct SelfEditSystemPrompt;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// The complete new prompt.
    new_prompt: String,
}

impl Tool for SelfEditSystemPrompt {
    const NAME: &'static str = "self_edit_system_prompt";
    const DESCRIPTION: &'static str = "Replaces your system prompt, from your next step on.";
    const CAN_APPROVE_ALWAYS: bool = false;
    type Params = Params;

    fn action(params: &Params, _: &ToolContext) -> Result<String, String> {
        if params.new_prompt.len() > MAX_TEXT_LEN {
            return Err(format!("`new_prompt` is longer than {MAX_TEXT_LEN} bytes; shorten it"));
        }
        if params.new_prompt.contains('\0') {
            return Err("`new_prompt` contains a NUL character".into());
        }
        Ok(Action::SelfEditSystemPrompt.to_string())
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        let prompt = ctx.redact_for_storage(params.new_prompt);
        let done = format!("system prompt updated ({} bytes){}", prompt.text.len(), prompt.note);
        apply_edit(ctx, Action::SelfEditSystemPrompt.to_string(), SelfEdit::SystemPrompt(prompt.text), done).await
    }
}
