//! Executes a tool call: parses its arguments, judges its action, asks for approval if needed, records each decision in
//! the audit log, and then runs the tool.

use std::sync::Arc;

use chorus_base::error::Error;
use chorus_base::requester::Requester;
use chorus_catalog::AuditDecision;
use chorus_permissions::{Profile, WorkspacePaths};
use chorus_proto::ToolCall;
use chorus_proto::methods::permissions::{Decision, Rule, Verdict};

use super::files::workspace_paths;
use super::tool::{AlwaysApproval, PreparedCall, ToolOutcome};
use super::{ToolContext, WorkingDirectory, approval_question, mcp, registry, unsandboxed_approval};
use crate::approvals::{ApprovalAnswer, ApprovalScope, TurnApproval, rule_reason};

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

/// Returns true if this tool works in the working directory of the conversation.
#[must_use]
pub fn uses_workspace(tool: &str) -> bool {
    registry::find_tool(tool).is_some_and(|tool| tool.uses_workspace)
}

/// Judges a call by the agent's profile.
async fn judge_call(prepared: &PreparedCall, ctx: &ToolContext) -> Verdict {
    let PreparedCall { action, always, asks_if_unattended, definition, .. } = prepared;
    let (profile, judged, workspace) = (Arc::clone(&ctx.profile), action.clone(), ctx.workspace());
    let mut verdict = judge_blocking(move || profile.judge_in_workspace(&judged, &workspace_paths(&workspace)))
        .await
        .unwrap_or_else(|| Verdict {
            decision: Decision::Deny,
            rule: Rule::Shell { reason: "the permission check failed".into() },
            parts: Vec::new(),
        });
    let was_asked = |rule: &Rule| matches!(rule, Rule::Always { .. } | Rule::Agent { .. });
    let by_approval = was_asked(&verdict.rule) || verdict.parts.iter().any(|part| was_asked(&part.rule));
    if let (true, Decision::Allow, AlwaysApproval::NotThisCall(why)) = (by_approval, verdict.decision, always) {
        verdict.decision = Decision::Ask;
        verdict.rule = Rule::Shell { reason: (*why).to_owned() };
    }
    if *asks_if_unattended && ctx.requester == Requester::Nobody && verdict.decision == Decision::Allow {
        verdict.decision = Decision::Ask;
        verdict.rule = Rule::Shell { reason: "no person requested this turn".to_owned() };
    }
    if let Some(definition) = definition {
        mcp::require_same_definition(&mut verdict, definition, &ctx.profile);
    }
    let (sandbox, servers) = (&ctx.services.sandbox, &ctx.services.mcp);
    unsandboxed_approval::require_sandbox_or_approval(&mut verdict, action, (sandbox, servers)).await;
    verdict
}

/// Judges in a blocking thread, because a long command would hold up the runtime. Returns `None` if the thread fails.
async fn judge_blocking<T: Send + 'static>(judge: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    chorus_runtime::spawn_blocking(judge).await.ok()
}

/// Finds the tool and parses the arguments.
fn prepare_call(call: &ToolCall, ctx: &ToolContext) -> Result<PreparedCall, String> {
    let Some(tool) = registry::find_tool(&call.name) else {
        if let Some(prepared) = mcp::prepare_call(call, ctx) {
            return prepared;
        }
        let own = registry::visible_names(&ctx.profile).into_iter().map(str::to_owned);
        let names = own.chain(mcp::visible_names(ctx)).collect::<Vec<_>>().join(", ");
        let there = if names.is_empty() { "no tools are available".into() } else { format!("available: {names}") };
        return Err(format!("unknown tool {:?}; {there}", call.name));
    };
    if let (true, WorkingDirectory::Unavailable(why)) = (tool.uses_workspace, &ctx.place) {
        return Err(why.clone());
    }
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
        return unrecorded(&failure);
    }
    match decision {
        Decision::Allow => {}
        Decision::Deny => return ToolOutcome::error(format!("{} is not allowed: {why}", prepared.action)),
        Decision::Ask => {
            if let Some(approval) = turn_approval(&prepared, &ctx) {
                let rule = format!("the whole turn was approved at {}", approval.id);
                let by = approval.by.requester.to_string();
                if let Err(failure) = note(row(ApprovalScope::Turn.audit_word(), &rule, by)).await {
                    return unrecorded(&failure);
                }
                return prepared.call.run(ctx).await;
            }
            let leads_to = prepared.call.effective_target(&ctx).await;
            if let Some(place) = &leads_to {
                let _ = ctx.approved_target.set(place.clone());
            }
            let question = approval_question::build(&call, &prepared, verdict, leads_to.as_deref(), &ctx).await;
            // The operation that decides records the decision.
            let asked = ctx.services.approvals.ask(question, &*ctx.emit_event, &ctx.cancel);
            match ctx.pause_for(asked).await {
                Ok(ApprovalAnswer::Approved { .. }) if is_denied_now(&prepared.action, &ctx).await => {
                    let why = "the agent's permissions changed while it was pending";
                    let _ = note(row("deny", why, ctx.requester.to_string())).await;
                    return ToolOutcome::error(format!("{} is not allowed: {why}", prepared.action));
                }
                Ok(ApprovalAnswer::Approved { .. }) if ctx.cancel.is_cancelled() => {
                    return ToolOutcome::error("the turn was cancelled before this call ran");
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

/// Returns the approval of the whole turn that covers a call.
fn turn_approval(prepared: &PreparedCall, ctx: &ToolContext) -> Option<TurnApproval> {
    let approvals = &ctx.services.approvals;
    let covered = approval_question::is_covered_by_turn(prepared);
    covered.then(|| approvals.turn_approval(ctx.agent, ctx.turn, &ctx.requester, &prepared.action)).flatten()
}

/// Returns the outcome of a call whose decision cannot be recorded.
fn unrecorded(failure: &Error) -> ToolOutcome {
    let hint = failure.hint.as_ref().map(|hint| format!("; hint for the owner: {hint}")).unwrap_or_default();
    ToolOutcome::error(format!("not done: cannot record the decision in the audit log ({failure}){hint}"))
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
