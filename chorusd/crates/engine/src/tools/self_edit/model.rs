//! The tool `self_edit_model`: changes the agent's model.

use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{apply_edit, ensure_no_secret};
use crate::tools::ToolContext;
use crate::tools::host::SelfEdit;
use crate::tools::tool::{Tool, ToolOutcome};

pub(crate) struct SelfEditModel;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// As `list_models` shows it, or an alias.
    model: String,
}

impl Tool for SelfEditModel {
    const NAME: &'static str = "self_edit_model";
    const DESCRIPTION: &'static str = "Changes the model that you run on, from your next step on.";
    type Params = Params;

    fn action(params: &Params, ctx: &ToolContext) -> Result<String, String> {
        let plain = |c: char| !c.is_whitespace() && !c.is_control();
        if params.model.is_empty() || params.model.len() > 256 || !params.model.chars().all(plain) {
            return Err("`model` is not a valid model name; see list_models".into());
        }
        ensure_no_secret(&params.model, "model", ctx)?;
        Ok(Action::SelfEditModel { model: &params.model }.to_string())
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        let action = Action::SelfEditModel { model: &params.model }.to_string();
        let done = format!("changed the model to {} from your next step on", params.model);
        apply_edit(ctx, action, SelfEdit::Model(params.model), done).await
    }
}
