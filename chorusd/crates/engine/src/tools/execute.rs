//! Executes a tool call: parses its arguments, judges its action, asks for approval if needed, records each decision in
//! the audit log, and then runs the tool.

use std::sync::Arc;

use chorus_permissions::{Profile, WorkspacePaths};
use chorus_proto::ToolCall;
use chorus_proto::methods::approvals::Detail;
use chorus_proto::methods::permissions::{Decision, Rule, Verdict};
use chorus_store::catalog::AuditDecision;
use serde_json::{Map, Value};

use super::files::workspace_paths;
use super::tool::{AlwaysApproval, PreparedCall, ToolOutcome};
use super::{ToolContext, registry, unsandboxed_approval};
use crate::approvals::{ApprovalAnswer, Question, rule_reason};

/// Returns true if a call needs approval, as far as is known before the calls in front of it have run.
#[must_use]
pub async fn needs_approval(call: &ToolCall, ctx: &ToolContext) -> bool {
    match prepare_call(call, ctx) {
        Ok(prepared) => judge_call(&prepared, ctx).await.decision == Decision::Ask,
        Err(_) => false,
    }
}

/// Returns true if later calls of the same reply must wait for calls of this tool.
#[must_use]
pub fn runs_in_order(tool: &str) -> bool {
    registry::find_tool(tool).is_some_and(|tool| tool.in_order)
}

/// Judges a call by the agent's profile.
async fn judge_call(PreparedCall { action, always, .. }: &PreparedCall, ctx: &ToolContext) -> Verdict {
    let (profile, judged, workspace) = (Arc::clone(&ctx.profile), action.clone(), ctx.workspace());
    let mut verdict = judge_blocking(move || profile.judge_in_workspace(&judged, &workspace_paths(&workspace)))
        .await
        .unwrap_or_else(|| Verdict {
            decision: Decision::Deny,
            rule: Rule::Shell { reason: "the permission check failed".into() },
            parts: Vec::new(),
        });
    if let (Rule::Always { .. }, AlwaysApproval::NotThisCall(why)) = (&verdict.rule, always) {
        verdict.decision = Decision::Ask;
        verdict.rule = Rule::Shell { reason: (*why).to_owned() };
    }
    unsandboxed_approval::require_sandbox_or_approval(&mut verdict, action, &ctx.services.sandbox).await;
    verdict
}

/// Judges in a blocking thread, because a long command would hold up the runtime. Returns `None` if the thread fails.
async fn judge_blocking<T: Send + 'static>(judge: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    chorus_runtime::spawn_blocking(judge).await.ok()
}

/// Finds the tool and parses the arguments.
fn prepare_call(call: &ToolCall, ctx: &ToolContext) -> Result<PreparedCall, String> {
    let Some(tool) = registry::find_tool(&call.name) else {
        let names = registry::visible_names(&ctx.profile).join(", ");
        let there = if names.is_empty() { "no tools are available".into() } else { format!("available: {names}") };
        return Err(format!("unknown tool {:?}; {there}", call.name));
    };
    if !call.params.get().trim_start().starts_with('{') {
        return Err(format!("the parameters of {} are not a JSON object; call it again with a JSON object", call.name));
    }
    (tool.prepare)(&call.params, ctx)
}

/// Executes a call.
pub async fn execute_call(call: ToolCall, ctx: Arc<ToolContext>) -> ToolOutcome {
    let prepared = match prepare_call(&call, &ctx) {
        Ok(prepared) => prepared,
        Err(wrong) => return ToolOutcome::error(wrong),
    };
    let verdict = judge_call(&prepared, &ctx).await;
    let why = rule_reason(&verdict.rule);
    let row = |decision: &str, rule: &str, user: String| AuditDecision {
        at: ctx.services.clock.now(),
        agent: ctx.agent,
        agent_name: ctx.agent_name.clone(),
        turn: Some(ctx.turn),
        action: prepared.action.clone(),
        decision: decision.into(),
        rule: rule.into(),
        user,
        old: None,
        new: None,
    };
    let note = |row| ctx.services.store.catalog.audit.append(row);
    let decision = verdict.decision;
    if let Err(failure) = note(row(decision.as_str(), &why, ctx.requester.to_string())).await {
        let hint = failure.hint.as_ref().map(|hint| format!("; hint for the owner: {hint}")).unwrap_or_default();
        return ToolOutcome::error(format!("not done: cannot record the decision in the audit log ({failure}){hint}"));
    }
    match decision {
        Decision::Allow => {}
        Decision::Deny => return ToolOutcome::error(format!("{} is not allowed: {why}", prepared.action)),
        Decision::Ask => {
            let leads_to = prepared.call.effective_target(&ctx).await;
            if let Some(place) = &leads_to {
                let _ = ctx.approved_target.set(place.clone());
            }
            let question = Question {
                agent: ctx.agent,
                agent_name: ctx.agent_name.clone(),
                turn: ctx.turn,
                call_id: call.id.clone(),
                action: prepared.action.clone(),
                verdict,
                details: call_details(&call, &prepared.action, leads_to.as_deref()),
                not_always: not_always_reason(&prepared, &ctx),
                requester: ctx.requester.clone(),
            };
            // The operation that decides records the decision.
            match ctx.services.approvals.ask(question, &*ctx.emit_event, &ctx.cancel).await {
                Ok(ApprovalAnswer::Approved { .. }) if is_denied_now(&prepared.action, &ctx).await => {
                    let why = "the agent's permissions changed while it was pending";
                    let _ = note(row("deny", why, ctx.requester.to_string())).await;
                    return ToolOutcome::error(format!("{} is not allowed: {why}", prepared.action));
                }
                Ok(ApprovalAnswer::Approved { .. }) => {}
                Ok(ApprovalAnswer::Denied { why, .. }) => {
                    return ToolOutcome::error(format!("{} was not approved: {why}", prepared.action));
                }
                Err(failure) => return ToolOutcome::error(format!("cannot ask for approval: {failure}")),
            }
        }
    }
    prepared.call.run(ctx).await
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
    let unconfined = unsandboxed_approval::unconfined_reason(action, &ctx.services.sandbox);
    let secret = ctx.has_secret(action).then(|| "it contains a secret, which would be stored in agent.json".to_owned());
    ctx.profile.ensure_always_allowable(action).err().or(unconfined).or(secret)
}

/// Returns true if the agent's profile denies the action by now (the approval may have taken a while), or if the agent
/// does not exist any more.
fn is_denied_by(action: &str, now: Option<&Profile>, workspace: &WorkspacePaths) -> bool {
    now.is_none_or(|profile| profile.judge_in_workspace(action, workspace).decision == Decision::Deny)
}

/// Like [`is_denied_by`], for the agent of a tool context.
async fn is_denied_now(action: &str, ctx: &ToolContext) -> bool {
    let (action, now, workspace) = (action.to_owned(), (ctx.current_profile)(), ctx.workspace());
    judge_blocking(move || is_denied_by(&action, now.as_deref(), &workspace_paths(&workspace))).await.unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use chorus_permissions::Profiles;

    use super::*;

    #[test]
    fn what_was_approved_is_denied_where_the_profile_denies_it_by_now() {
        let profiles = Profiles::default();
        let now = |name: &str| profiles.get(name).map(|profile| &**profile);
        let denied = |name: &str| is_denied_by("tool:bash:ls", now(name), &WorkspacePaths::default());
        assert_eq!(["open", "standard", "locked"].map(denied), [false, false, true]);
        assert!(denied("of an agent that is gone"));
    }
}
