//! The tool `send_to_agent`: sends a message that starts a turn of another agent.

use std::sync::Arc;
use std::time::Duration;

use chorus_config::agent::check_name;
use chorus_permissions::Action;
use schemars::JsonSchema;
use serde::Deserialize;

use super::host::ToolCaller;
use super::tool::{Tool, ToolOutcome};
use super::{ToolContext, error_outcome};

/// Limit on the length of a message, in bytes.
const MAX_MESSAGE_LEN: usize = 32 << 10;

/// Limit on the time that a call waits for the answer.
const MAX_WAIT_SECONDS: u64 = 600;

pub(super) struct SendToAgent;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// As `list_agents` shows it.
    agent: String,
    message: String,
    /// Seconds to wait for the answer, at most 600. Without it you do not get the answer.
    #[serde(default)]
    wait: Option<u64>,
}

impl Params {
    /// Returns the argument of the action, which includes the message so that the approval prompt shows it.
    fn argument(&self) -> String {
        format!("{} {}", self.agent, self.message)
    }
}

impl Tool for SendToAgent {
    const NAME: &'static str = "send_to_agent";
    const DESCRIPTION: &'static str = "Sends a message to another agent, which starts working on it, in a separate conversation with you. \
         Its reply is sent back to you only if you wait for it.";
    type Params = Params;

    fn action(params: &Params, ctx: &ToolContext) -> Result<String, String> {
        check_name(&params.agent).map_err(|failure| format!("{}; see list_agents", failure.message))?;
        if params.agent == ctx.agent_name {
            return Err("an agent cannot send messages to itself".into());
        }
        if params.message.trim().is_empty() || params.message.len() > MAX_MESSAGE_LEN || params.message.contains('\0') {
            return Err(format!("`message` must be a non-empty text of at most {MAX_MESSAGE_LEN} bytes"));
        }
        if params.wait.is_some_and(|seconds| !(1..=MAX_WAIT_SECONDS).contains(&seconds)) {
            return Err(format!("`wait` must be 1 to {MAX_WAIT_SECONDS} seconds"));
        }
        Ok(Action::Other { tool: Self::NAME, argument: &params.argument() }.to_string())
    }

    async fn run(params: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        let Some(outside) = ctx.services.host() else {
            return ToolOutcome::error("the daemon is not ready");
        };
        let action = Action::Other { tool: Self::NAME, argument: &params.argument() }.to_string();
        let wait = params.wait.map(Duration::from_secs);
        let message = ctx.redact_for_storage(params.message);
        let sent = outside.send_to_agent(ToolCaller::new(&ctx, action), params.agent, message.text, wait);
        let answer = if wait.is_some() { ctx.pause_for(sent).await } else { sent.await };
        match answer {
            Ok(text) => ToolOutcome::success(text + message.note),
            Err(failure) => error_outcome(failure),
        }
    }
}
