//! The tool `remember`: stores a memory for later conversations.

use std::sync::Arc;

use chorus_catalog::{MemoryRow, RememberOutcome, memories};
use chorus_permissions::Action;
use chorus_proto::methods::memory::MemorySource;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::tool::{Tool, ToolOutcome};
use super::{ToolContext, error_outcome};

pub(super) struct Remember;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// One or two self-contained sentences.
    text: String,
    /// The related file in the workspace.
    #[serde(default)]
    path: Option<String>,
    /// For all agents of your project.
    #[serde(default)]
    project: bool,
}

impl Tool for Remember {
    const NAME: &'static str = "remember";
    const DESCRIPTION: &'static str = "Saves a fact for all your later conversations.";
    type Params = Params;

    fn action(params: &Params, ctx: &ToolContext) -> Result<String, String> {
        memories::validate_text(&params.text)?;
        memories::validate_path(params.path.as_deref())?;
        if params.project && ctx.project.is_none() {
            return Err("you have no project; call it without `project`".into());
        }
        // The prefix lets rules judge shared memories differently.
        let argument = if params.project { format!("project:{}", params.text) } else { params.text.clone() };
        Ok(Action::Other { tool: Self::NAME, argument: &argument }.to_string())
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        let (text, path) =
            match (memories::validate_text(&params.text), memories::validate_path(params.path.as_deref())) {
                (Ok(text), Ok(path)) => (ctx.redact_for_storage(text), path),
                (Err(why), _) | (_, Err(why)) => return ToolOutcome::error(why),
            };
        let path = path.map(|path| ctx.redact_for_storage(path).text);
        // The replacement of a secret may be longer than the secret.
        if let Err(why) = memories::validate_text(&text.text).and_then(|_| memories::validate_path(path.as_deref())) {
            return ToolOutcome::error(why);
        }
        let row = MemoryRow {
            id: Uuid::new_v4(),
            agent: ctx.agent,
            agent_name: ctx.agent_name.clone(),
            project: ctx.project.clone().filter(|_| params.project),
            text: text.text,
            path,
            at: ctx.services.clock.now(),
            user: ctx.requester.to_string(),
            source: MemorySource::Tool,
            message: ctx.message.clone(),
        };
        match ctx.services.store.catalog.memories.insert(row).await {
            Ok(RememberOutcome::New(_)) => {
                ToolOutcome::success(format!("saved; you will see it from your next step on{}", text.note))
            }
            Ok(RememberOutcome::Known(_)) => {
                ToolOutcome::success("already saved with the same text; nothing was added")
            }
            Err(failure) => error_outcome(failure),
        }
    }
}
