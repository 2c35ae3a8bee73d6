//! The tool `search_sessions`: searches the agent's earlier conversations.

use std::sync::Arc;

use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::host::ToolCaller;
use super::tool::{Tool, ToolOutcome};
use super::{ToolContext, error_outcome};

pub(super) struct SearchSessions;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// Words that must all occur in one message, or in the session's description.
    query: String,
}

impl Tool for SearchSessions {
    const NAME: &'static str = "search_sessions";
    const DESCRIPTION: &'static str = "Searches your saved conversations; returns up to 10, newest first.";
    type Params = Params;

    fn action(params: &Params, _: &ToolContext) -> Result<String, String> {
        if params.query.len() > 500 || params.query.chars().any(char::is_control) {
            return Err("`query` is longer than 500 bytes or contains control characters; use a few words".into());
        }
        Ok(Action::Other { tool: Self::NAME, argument: &params.query }.to_string())
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        let Some(outside) = ctx.services.host() else {
            return ToolOutcome::error("the daemon is not ready");
        };
        let action = Action::Other { tool: Self::NAME, argument: &params.query };
        match outside.search_sessions(ToolCaller::new(&ctx, action), params.query.clone()).await {
            Ok(text) => ToolOutcome::success(text),
            Err(failure) => error_outcome(failure),
        }
    }
}
