//! Checks the MCP servers: which ones run, and whether agents name others.

use chorus_mcp_client::{ServerState, ServerStatus};
use chorus_proto::methods::doctor::{Check, Verdict};
use chorus_proto::pluralize::pluralize;

use super::{check, check_with, join_some};
use crate::ops::Ops;

const CHECK_NAME: &str = "MCP servers";

/// Runs all checks; none if no server is configured or named.
pub(super) fn checks(ops: &Ops) -> Vec<Check> {
    let servers = ops.mcp.statuses();
    let (failed, working): (Vec<_>, Vec<_>) =
        servers.iter().partition(|server| matches!(server.state, ServerState::Failed { .. }));
    let mut checks = Vec::new();
    if !working.is_empty() {
        let all: Vec<String> = working.into_iter().map(describe).collect();
        checks.push(check(CHECK_NAME, Verdict::Ok, all.join(", ")));
    }
    for server in failed {
        let hint = format!("fix [mcp.{}] in config.toml, then `chorusctl daemon restart`; it is retried", server.name);
        checks.push(check_with(CHECK_NAME, Verdict::Warn, describe(server), hint));
    }
    if let Some(unknown) = unknown_servers(ops) {
        let hint = "add it to config.toml, or change `mcp` of the agent; see docs/TOOLS.md";
        checks.push(check_with(CHECK_NAME, Verdict::Warn, unknown, hint));
    }
    checks
}

fn describe(server: &ServerStatus) -> String {
    let state = match &server.state {
        ServerState::Idle => "not needed yet".into(),
        ServerState::Starting => "starting".into(),
        ServerState::Running => {
            let left_out = match server.left_out {
                0 => String::new(),
                count => format!(", {count} more left out"),
            };
            format!("{}{left_out}", pluralize(server.tools as u64, "tool"))
        }
        ServerState::Failed { why, .. } => format!("not running: {why}"),
        ServerState::Stopped => "stopped".into(),
    };
    format!("{} ({state})", server.name)
}

/// Returns which servers agents name that are not configured.
fn unknown_servers(ops: &Ops) -> Option<String> {
    let of = |entry: &std::sync::Arc<crate::agent::agent_index::AgentEntry>| {
        let settings = entry.settings.clone();
        let unknown = settings.mcp.iter().filter(|server| !ops.mcp.contains(server));
        unknown.map(|server| format!("{} of {}", server, settings.name)).collect::<Vec<_>>()
    };
    let all: Vec<String> = ops.agents.all().iter().flat_map(of).collect();
    (!all.is_empty()).then(|| format!("not configured: {}", join_some(&all)))
}
