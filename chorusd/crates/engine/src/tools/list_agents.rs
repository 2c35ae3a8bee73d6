//! The tool `list_agents`: lists all agents.

use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::ToolContext;
use super::tool::{Tool, ToolOutcome};

pub(super) struct ListAgents;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {}

impl Tool for ListAgents {
    const NAME: &'static str = "list_agents";
    const DESCRIPTION: &'static str = "Lists the agents with their models and if they are in a conversation.";
    type Params = Params;

    fn action(_: &Params, _: &ToolContext) -> Result<String, String> {
        Ok(Action::Other { tool: Self::NAME, argument: "" }.to_string())
    }

    async fn run(_: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        match ctx.services.host() {
            Some(outside) => ToolOutcome::success(outside.list_agents(ctx.agent).await),
            None => ToolOutcome::error("the daemon is not ready"),
        }
    }
}
