//! The tool `send_to_agent`: sends a message that starts a turn of another agent.

use std::sync::Arc;

use chorus_config::agent::check_name;
use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::host::ToolCaller;
use super::tool::{Tool, ToolOutcome};
use super::{ToolContext, error_outcome};

/// Limit on the length of a message, in bytes.
const MAX_MESSAGE_LEN: usize = 32 << 10;

pub(super) struct SendToAgent;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// As `list_agents` shows it.
    agent: String,
    message: String,
}

impl Params {
    /// Returns the argument of the action, which includes the message so that the approval prompt shows it.
    fn argument(&self) -> String {
        format!("{} {}", self.agent, self.message)
    }
}

impl Tool for SendToAgent {
    const NAME: &'static str = "send_to_agent";
    const DESCRIPTION: &'static str = "Sends a message to another agent, which starts working on it. Its reply is not sent back to you \
         automatically.";
    type Params = Params;

    fn action(params: &Params, ctx: &ToolContext) -> Result<String, String> {
        check_name(&params.agent).map_err(|failure| format!("{}; see list_agents", failure.message))?;
        if params.agent == ctx.agent_name {
            return Err("an agent cannot send messages to itself".into());
        }
        if params.message.trim().is_empty() || params.message.len() > MAX_MESSAGE_LEN || params.message.contains('\0') {
            return Err(format!("`message` must be a non-empty text of at most {MAX_MESSAGE_LEN} bytes"));
        }
        Ok(Action::Other { tool: Self::NAME, argument: &params.argument() }.to_string())
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        let Some(outside) = ctx.services.host() else {
            return ToolOutcome::error("the daemon is not ready");
        };
        let action = Action::Other { tool: Self::NAME, argument: &params.argument() }.to_string();
        let message = ctx.redact_for_storage(params.message);
        match outside.send_to_agent(ToolCaller::new(&ctx, action), params.agent, message.text).await {
            Ok(text) => ToolOutcome::success(text + message.note),
            Err(failure) => error_outcome(failure),
        }
    }
}
