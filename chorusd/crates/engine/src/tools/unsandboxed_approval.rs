//! Policy for machines without a sandbox: commands need approval there, even if the profile allows them. So do the tools of
//! MCP servers that are programs.

use chorus_mcp_client::McpServers;
use chorus_proto::methods::permissions::{Decision, Rule, Verdict};
use chorus_sandbox::Sandbox;

/// Changes the verdict on an allowed command to `ask` if it cannot be confined.
pub async fn require_sandbox_or_approval(
    verdict: &mut Verdict,
    action: &str,
    (sandbox, servers): (&Sandbox, &McpServers),
) {
    if runs_programs(action, servers) {
        sandbox.level_or_probe().await;
        downgrade_to_ask(verdict, unconfined_reason(action, (sandbox, servers)));
    }
}

/// Returns the reason, for people, why an action must be approved each time: it runs a command or is done by a program,
/// and there is no sandbox.
#[must_use]
pub fn unconfined_reason(action: &str, (sandbox, servers): (&Sandbox, &McpServers)) -> Option<String> {
    let missing = sandbox.unconfined_reason().filter(|_| runs_programs(action, servers))?;
    Some(format!("no sandbox for commands: {missing}"))
}

/// Returns true if an action runs a command or is done by a server that is a program.
fn runs_programs(action: &str, servers: &McpServers) -> bool {
    let server = action.strip_prefix("tool:mcp:").and_then(|tool| tool.split_once('.'));
    runs_commands(action) || server.is_some_and(|(server, _)| servers.is_program(server))
}

/// Returns true if an action runs a command.
fn runs_commands(action: &str) -> bool {
    ["tool:bash:", "tool:git:"].iter().any(|prefix| action.starts_with(prefix))
}

fn downgrade_to_ask(verdict: &mut Verdict, why: Option<String>) {
    if let (Decision::Allow, Some(reason)) = (verdict.decision, why) {
        verdict.decision = Decision::Ask;
        verdict.rule = Rule::Shell { reason };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_sandbox_what_is_allowed_is_asked_about_and_what_is_denied_stays_so() {
        for (before, why, after) in [
            (Decision::Allow, None, Decision::Allow),
            (Decision::Allow, Some("there is none"), Decision::Ask),
            (Decision::Ask, Some("there is none"), Decision::Ask),
            (Decision::Deny, Some("there is none"), Decision::Deny),
        ] {
            let mut judged = Verdict { decision: before, rule: Rule::Default, parts: Vec::new() };
            downgrade_to_ask(&mut judged, why.map(str::to_owned));
            assert_eq!(judged.decision, after);
            assert_eq!(matches!(judged.rule, Rule::Shell { reason } if reason == "there is none"), before != after);
        }
        assert!(runs_commands("tool:bash:ls") && runs_commands("tool:git:init") && !runs_commands("tool:view:x"));
    }
}
