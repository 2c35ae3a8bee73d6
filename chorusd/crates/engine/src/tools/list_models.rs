//! The tool `list_models`: lists the available models.

use std::fmt::Write as _;
use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::ToolContext;
use super::tool::{Tool, ToolOutcome};

pub(super) struct ListModels;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {}

impl Tool for ListModels {
    const NAME: &'static str = "list_models";
    const DESCRIPTION: &'static str = "Lists available models as provider/model with their context length.";
    type Params = Params;

    fn action(_: &Params, _: &ToolContext) -> Result<String, String> {
        Ok(Action::Other { tool: Self::NAME, argument: "" }.to_string())
    }

    async fn run(_: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        let models = &ctx.services.models;
        let mut text = String::new();
        for provider in models.available().providers {
            for model in &provider.models {
                let _ = write!(text, "{}/{}", provider.name, model.id);
                if let Some(length) = model.context_length {
                    let _ = write!(text, " ({length} tokens)");
                }
                text.push('\n');
            }
            if let Some(problem) = &provider.problem {
                let _ = writeln!(text, "{}: {problem}", provider.name);
            }
        }
        for (alias, meant) in models.aliases() {
            let _ = writeln!(text, "{alias} = {meant}");
        }
        if text.is_empty() {
            text.push_str("no provider returned a list of models");
        }
        ToolOutcome::success(text)
    }
}
