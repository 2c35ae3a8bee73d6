//! The question that people are asked about a call: what runs, where, what it may reach, why, and which answers are
//! possible.

use std::path::PathBuf;

use chorus_proto::ToolCall;
use chorus_proto::methods::approvals::{Detail, Reach};
use chorus_proto::methods::permissions::{Decision, Rule, Verdict};
use serde_json::{Map, Value};

use super::files::workspace_paths;
use super::tool::{AlwaysApproval, PreparedCall};
use super::{ToolContext, unsandboxed_approval};
use crate::approvals::{Question, reaches_beyond_turn};

/// Patterns that ask before every command.
const EVERY_COMMAND: [&str; 3] = ["tool:bash:.*", "tool:.*", ".*"];

/// Returns true if an approval of the whole turn covers a call: one that does no more than its action says, and nothing
/// beyond the turn.
pub(super) fn is_covered_by_turn(PreparedCall { action, always, .. }: &PreparedCall) -> bool {
    *always != AlwaysApproval::Never && !reaches_beyond_turn(action)
}

/// Builds the question about a call. `leads_to` is its effective target.
pub(super) async fn build(
    call: &ToolCall,
    prepared: &PreparedCall,
    verdict: Verdict,
    leads_to: Option<&str>,
    ctx: &ToolContext,
) -> Question {
    let not_always = not_always_reason(prepared, ctx);
    Question {
        agent: ctx.agent,
        agent_name: ctx.agent_name.clone(),
        conversation_name: ctx.conversation_name.clone(),
        turn: ctx.turn,
        call_id: call.id.clone(),
        action: prepared.action.clone(),
        reason: plain_reason(&verdict, &prepared.action, ctx.profile.guard_reason(&prepared.action)),
        verdict,
        details: prepared.details.iter().cloned().chain(call_details(call, &prepared.action, leads_to)).collect(),
        definition: prepared.definition.clone(),
        patterns: find_patterns(prepared, ctx).await,
        not_always,
        turn_allowed: is_covered_by_turn(prepared),
        directory: ctx.workspace().to_string_lossy().into_owned(),
        reach: command_reach(&prepared.action, ctx),
        requester: ctx.requester.clone(),
    }
}

/// Returns what the action string does not say: the effective target, and each argument that the action does not
/// contain.
fn call_details(call: &ToolCall, action: &str, leads_to: Option<&str>) -> Vec<Detail> {
    let detail = |name: &str, text: String| Detail { name: name.to_owned(), text };
    let given: Map<String, Value> = serde_json::from_str(call.params.get()).unwrap_or_default();
    let said = |value: &Value| match value {
        Value::String(text) => (!action.contains(text.as_str())).then(|| text.clone()),
        Value::Null | Value::Bool(false) => None,
        Value::Object(_) | Value::Array(_) => serde_json::to_string_pretty(value).ok(),
        other => Some(other.to_string()),
    };
    let given = given.iter().filter_map(|(name, value)| Some(detail(name, said(value)?)));
    leads_to.map(|place| detail("to", place.to_owned())).into_iter().chain(given).collect()
}

/// Returns the reason why the action cannot be allowed for good; `None` if it can.
fn not_always_reason(PreparedCall { action, always, .. }: &PreparedCall, ctx: &ToolContext) -> Option<String> {
    match always {
        AlwaysApproval::Allowed => {}
        AlwaysApproval::Never => return Some("its effect depends on more than the action shows".into()),
        AlwaysApproval::NotThisCall(why) => return Some((*why).to_owned()),
    }
    let unconfined = unsandboxed_approval::unconfined_reason(action, (&ctx.services.sandbox, &ctx.services.mcp));
    let secret = ctx.has_secret(action).then(|| "it contains a secret, which would be stored in agent.json".to_owned());
    ctx.profile.ensure_always_allowable(action).err().or(unconfined).or(secret)
}

/// Returns the patterns that would allow the call from now on.
async fn find_patterns(PreparedCall { action, always, .. }: &PreparedCall, ctx: &ToolContext) -> Vec<String> {
    let unconfined = unsandboxed_approval::unconfined_reason(action, (&ctx.services.sandbox, &ctx.services.mcp));
    if *always != AlwaysApproval::Allowed || unconfined.is_some() {
        return Vec::new();
    }
    let (profile, judged, workspace) = (ctx.profile.clone(), action.clone(), ctx.workspace());
    let proposed =
        chorus_runtime::spawn_blocking(move || profile.propose_patterns(&judged, &workspace_paths(&workspace)));
    let patterns = proposed.await.unwrap_or_default();
    if patterns.iter().any(|pattern| ctx.has_secret(pattern)) { Vec::new() } else { patterns }
}

/// Returns what a command may reach in its sandbox; `None` for other actions.
fn command_reach(action: &str, ctx: &ToolContext) -> Option<Reach> {
    if !action.starts_with("tool:bash:") {
        return None;
    }
    let sandboxed =
        unsandboxed_approval::unconfined_reason(action, (&ctx.services.sandbox, &ctx.services.mcp)).is_none();
    let workspace: PathBuf = ctx.workspace();
    Some(Reach {
        sandboxed,
        network: !sandboxed || ctx.allows_network(),
        writes: sandboxed.then(|| workspace.to_string_lossy().into_owned()).into_iter().collect(),
    })
}

/// Says in plain words why a call is asked about, to be read after "asked because". Which rule it was, people see on
/// request. `guard` is why no rule could allow it.
fn plain_reason(verdict: &Verdict, action: &str, guard: Option<String>) -> String {
    let asked = verdict.parts.iter().filter(|part| part.decision == Decision::Ask).map(|part| &part.rule);
    let mut rules = std::iter::once(&verdict.rule).chain(asked);
    if let Some(reason) = rules.find_map(|rule| if let Rule::Shell { reason } = rule { Some(reason) } else { None }) {
        // A rule that matches any program is named in it.
        let reason = reason.split_once(" matches any program, and ").map_or(&**reason, |(_, why)| why);
        return reason.split(": name the program").next().unwrap_or_default().to_owned();
    }
    let asks = match &verdict.rule {
        Rule::Pattern { pattern, .. } if EVERY_COMMAND.contains(&&**pattern) && action.starts_with("tool:bash:") => {
            "its permissions ask before every command"
        }
        Rule::Pattern { .. } => "its permissions ask before this kind of action",
        _ => "no rule of its permissions allows it",
    };
    guard.map_or_else(|| asks.to_owned(), |guard| format!("{asks}, and {guard}"))
}
