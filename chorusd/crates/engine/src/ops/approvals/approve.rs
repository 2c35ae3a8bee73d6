//! The operation `approvals.approve`.

use std::path::PathBuf;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::requester::{Answerer, Requester};
use chorus_catalog::AuditDecision;
use chorus_permissions::{Profile, agent_rules_to_json};
use chorus_proto::ErrorKind;
use chorus_proto::methods::approvals::{Approval, ApproveParams, ApproveResult};
use chorus_proto::methods::permissions::{AgentRule, AgentRuleKind, Decision};
use chorus_runtime::run_blocking;
use jiff::Timestamp;

use crate::agent::agent_index::AgentEntry;
use crate::approvals::{ApprovalScope, Approvals, Claim, PermissionsChange, TurnApproval};
use crate::ops::agent::AgentEditor;
use crate::ops::hints;
use crate::ops::permissions::usable_profile;
use crate::ops::resolve_agent::unknown_agent_error;
use crate::tools::workspace_paths;

/// Approves an action: once, and from now on or for the rest of its turn if the parameters say so.
///
/// # Errors
/// `not_found`, `conflict`, `expired`; `denied` if the agent's profile denies the action by now, or if the wanted scope
/// is impossible, in which case the approval stays open. An answer that cannot be recorded denies the action.
pub async fn approve(editor: &AgentEditor, approvals: &Approvals, params: ApproveParams) -> Result<ApproveResult> {
    approve_as(editor, approvals, params, &Requester::Owner.into()).await
}

/// Like [`approve`], on behalf of `by`. `always` and `pattern` require an approver, because they change what the agent
/// may do.
///
/// # Errors
/// As [`approve`]; `denied` also if `by` may not answer.
pub async fn approve_as(
    editor: &AgentEditor,
    approvals: &Approvals,
    params: ApproveParams,
    by: &Answerer,
) -> Result<ApproveResult> {
    let scope = match (params.always, params.pattern, params.turn) {
        (false, false, false) => ApprovalScope::Once,
        (true, false, false) => ApprovalScope::Action,
        (false, true, false) => ApprovalScope::Pattern,
        (false, false, true) => ApprovalScope::Turn,
        _ => return Err(Error::invalid("only one of `always`, `pattern` and `turn` can be set")),
    };
    let is_permanent = matches!(scope, ApprovalScope::Action | ApprovalScope::Pattern);
    if is_permanent && !by.is_approver && by.requester != Requester::Owner {
        return Err(Error::new(ErrorKind::Denied, "only an approver can allow it permanently")
            .hint("allow it once, or ask an approver (`approvers` in [discord])"));
    }
    let agents = &editor.agents;
    super::ensure_agent_here(agents, approvals, &params.id).await?;
    if let Some(agent) = approvals.agent_of(&params.id).and_then(|id| agents.index.by_id(id)) {
        // Closes the approval if agent.json was edited and nothing has reloaded it since.
        agents.reload_if_changed(agent).await?;
    }
    // Before the approval is claimed: an operation that destroys the agent holds this lock while it waits for the turn,
    // and so for the approval.
    let one_at_a_time = if is_permanent { Some(agents.lock.lock().await) } else { None };
    let claim = approvals.claim(&params.id, by, params.hash.as_deref()).await?;
    if is_permanent {
        let result = approve_permanently(editor, claim, &by.requester, scope).await;
        drop(one_at_a_time);
        return result;
    }
    let turn = scope == ApprovalScope::Turn;
    if turn && !claim.approval().turn_allowed {
        return Err(Error::new(
            ErrorKind::Denied,
            "cannot approve the whole turn with it: it needs approval each time",
        )
        .hint(hints::APPROVE_ONCE));
    }
    let agent =
        agents.index.by_id(claim.agent()).ok_or_else(|| unknown_agent_error(&agents.index, &claim.approval().agent))?;
    // Without reloading agent.json, which could wait for a destroy that waits for this approval.
    let claim = ensure_not_denied(&agent, claim).await?;
    let recorded = claim.approve(scope, None).await?;
    if turn {
        // Before the answer is delivered, so that the next question finds it.
        let (turn, id) = (recorded.approval.turn_id, recorded.approval.id.clone());
        approvals.approve_turn(agent.settings.id, TurnApproval { turn, by: by.clone(), id });
        if agents.index.by_id(agent.settings.id).is_none_or(|now| now.permissions != agent.permissions) {
            approvals.end_turn(agent.settings.id, turn);
        }
    }
    Ok(ApproveResult {
        approval: recorded.deliver(),
        always: false,
        profile_before: None,
        rules: Vec::new(),
        turn,
        warnings: Vec::new(),
    })
}

/// Denies the action if the agent's profile denies it by now, since no approval overrides that.
async fn ensure_not_denied<'a>(agent: &AgentEntry, claim: Claim<'a>) -> Result<Claim<'a>> {
    let (profile, action) = (usable_profile(&agent.settings)?.clone(), claim.approval().action.clone());
    let dir = working_directory(agent, claim.approval());
    let decision =
        run_blocking(move || Ok(profile.judge_in_workspace(&action, &workspace_paths(&dir)).decision)).await?;
    if decision != Decision::Deny {
        return Ok(claim);
    }
    let name = agent.settings.name.clone();
    claim.deny("the agent's profile now denies it").await?;
    Err(Error::new(ErrorKind::Denied, format!("the profile of {name} now denies it, so it was denied"))
        .hint(format!("see the profile: chorusctl agent config {name} permissions")))
}

/// Returns the directory in which the action runs: the agent's workspace, or the worktree of the conversation.
fn working_directory(agent: &AgentEntry, approval: &Approval) -> PathBuf {
    approval.directory.as_ref().map_or_else(|| agent.settings.workspace(), PathBuf::from)
}

/// Approves the action and adds rules to the agent. The caller must hold the agents lock.
async fn approve_permanently(
    editor: &AgentEditor,
    claim: Claim<'_>,
    by: &Requester,
    scope: ApprovalScope,
) -> Result<ApproveResult> {
    let agents = &editor.agents;
    let agent =
        agents.index.by_id(claim.agent()).ok_or_else(|| unknown_agent_error(&agents.index, &claim.approval().agent))?;
    let agent = agents.reload_locked(agent).await?;
    let claim = ensure_not_denied(&agent, claim).await?;
    let profile = usable_profile(&agent.settings)?;
    let before: Vec<AgentRule> = profile.agent_rules().cloned().collect();
    let after = rules_with(&agent, profile, &claim, by, scope, editor.clock.now()).await?;
    let (old, new) = (agent_rules_to_json(&before), agent_rules_to_json(&after));
    // Recorded before the change.
    let change = PermissionsChange { old: old.to_string(), new: new.to_string() };
    let recorded = claim.approve(scope, Some(change)).await?;
    let set = editor.set_rules(&agent, new.clone(), None).await;
    let approval = recorded.approval.clone();
    let mut warnings = Vec::new();
    if let Err(failure) = &set {
        warnings.push(format!("approved once, but not permanently: {failure}"));
        let row = AuditDecision {
            at: editor.clock.now(),
            agent: agent.settings.id,
            agent_name: agent.settings.name.clone(),
            turn: Some(approval.turn_id),
            action: approval.action.clone(),
            decision: "not_changed".into(),
            rule: failure.to_string(),
            user: by.to_string(),
            old: Some(new.to_string()),
            new: Some(old.to_string()),
        };
        if let Err(failure) = editor.store.catalog.audit.append(row).await {
            tracing::warn!(%failure, "cannot record a failed change in the audit log");
        }
    }
    drop(recorded);
    let rules = if set.is_ok() { after.into_iter().skip(before.len()).collect() } else { Vec::new() };
    Ok(ApproveResult { approval, always: set.is_ok(), profile_before: None, rules, turn: false, warnings })
}

/// Returns the agent's rules with those that allow the action from now on.
async fn rules_with(
    agent: &AgentEntry,
    profile: &Arc<Profile>,
    claim: &Claim<'_>,
    by: &Requester,
    scope: ApprovalScope,
    at: Timestamp,
) -> Result<Vec<AgentRule>> {
    let refused = |why: String| {
        Error::new(ErrorKind::Denied, format!("cannot approve it permanently: {why}")).hint(hints::APPROVE_ONCE)
    };
    let (by, approval) = (by.to_string(), claim.approval());
    if scope == ApprovalScope::Action {
        let possible =
            approval.not_always.clone().map_or_else(|| profile.ensure_always_allowable(&approval.action), Err);
        possible.map_err(refused)?;
        return Ok(profile.extended_agent_rules(
            AgentRuleKind::Action,
            std::slice::from_ref(&approval.action),
            (at, &by),
            claim.definition(),
        ));
    }
    if approval.patterns.is_empty() {
        return Err(refused("no pattern is proven to cover no other program".into()));
    }
    let rules = profile.extended_agent_rules(AgentRuleKind::Command, &approval.patterns, (at, &by), None);
    // The file may have changed since the question: what is kept must allow the command.
    let (with_rules, action) = (profile.with_agent_rules(rules.clone()), approval.action.clone());
    let dir = working_directory(agent, approval);
    let decision =
        run_blocking(move || Ok(with_rules.judge_in_workspace(&action, &workspace_paths(&dir)).decision)).await?;
    match decision {
        Decision::Allow => Ok(rules),
        _ => Err(refused("the action would still need approval".into())),
    }
}
