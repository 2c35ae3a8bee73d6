//! The operation `permissions.check`.

use chorus_base::error::{Error, Result};
use chorus_mcp_client::McpServers;
use chorus_proto::methods::permissions::{CheckParams, Verdict};
use chorus_runtime::run_blocking;
use chorus_sandbox::Sandbox;

use super::usable_profile;
use crate::ops::agent::AgentResolver;
use crate::tools::{normalize_file_action, unsandboxed_approval, workspace_paths};

/// Judges an action by the agent's profile, taking into account whether commands can be confined.
///
/// # Errors
/// `agent_not_found`, `invalid_config`, and `invalid_params` for a malformed action.
pub async fn check(
    agents: &AgentResolver,
    sandbox: &Sandbox,
    servers: &McpServers,
    params: CheckParams,
) -> Result<Verdict> {
    let named = params
        .action
        .strip_prefix("tool:")
        .and_then(|rest| rest.split_once(':'))
        .is_some_and(|(tool, _)| !tool.is_empty() && tool.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
    if !named {
        let shown: String = params.action.chars().take(80).collect();
        return Err(Error::invalid(format!("not an action: {shown:?}"))
            .hint("for example \"tool:bash:git status\", \"tool:view:README.md\" or \"tool:git:push origin main\""));
    }
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let profile = usable_profile(&agent.settings)?.clone();
    let dir = agent.settings.workspace();
    // Off the async threads, because parsing a long command takes a while.
    let action = params.action;
    let (mut verdict, action) = run_blocking(move || {
        let action = normalize_file_action(&action, &dir).unwrap_or(action);
        Ok((profile.judge_in_workspace(&action, &workspace_paths(&dir)), action))
    })
    .await?;
    unsandboxed_approval::require_sandbox_or_approval(&mut verdict, &action, (sandbox, servers)).await;
    Ok(verdict)
}
