//! The operation `approvals.approve`.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::requester::{Answerer, Requester};
use chorus_proto::ErrorKind;
use chorus_proto::methods::approvals::{Approval, ApproveParams, ApproveResult};
use chorus_proto::methods::permissions::Decision;
use chorus_runtime::run_blocking;
use chorus_store::catalog::AuditDecision;
use serde_json::Value;

use crate::agent::agent_index::AgentEntry;
use crate::approvals::{Approvals, Claim, PermissionsChange};
use crate::ops::agent::AgentEditor;
use crate::ops::hints;
use crate::ops::permissions::usable_profile;
use crate::ops::resolve_agent::unknown_agent_error;
use crate::tools::workspace_paths;

/// Approves an action once; with `always` also in future.
///
/// # Errors
/// `not_found`, `conflict`, `expired`; `denied` if the agent's profile denies the action by now, or if `always` is
/// impossible, in which case the approval stays open. An answer that cannot be recorded denies the action.
pub async fn approve(editor: &AgentEditor, approvals: &Approvals, params: ApproveParams) -> Result<ApproveResult> {
    approve_as(editor, approvals, params, &Requester::Owner.into()).await
}

/// Like [`approve`], on behalf of `by`. `always` requires an approver, because it changes the agent's permissions.
///
/// # Errors
/// As [`approve`]; `denied` also if `by` may not answer.
pub async fn approve_as(
    editor: &AgentEditor,
    approvals: &Approvals,
    params: ApproveParams,
    by: &Answerer,
) -> Result<ApproveResult> {
    if params.always && !by.is_approver && by.requester != Requester::Owner {
        return Err(Error::new(ErrorKind::Denied, "only an approver can allow it permanently")
            .hint("allow it once, or ask an approver (`approvers` in [discord])"));
    }
    let agents = &editor.agents;
    if let Some(agent) = approvals.agent_of(&params.id).and_then(|id| agents.index.by_id(id)) {
        // Closes the approval if agent.json was edited and nothing has reloaded it since.
        agents.reload_if_changed(agent).await?;
    }
    // Before the approval is claimed: an operation that destroys the agent holds this lock while it waits for the turn,
    // and so for the approval.
    let one_at_a_time = if params.always { Some(agents.lock.lock().await) } else { None };
    let claim = approvals.claim(&params.id, by, params.hash.as_deref()).await?;
    if params.always {
        let result = approve_always(editor, claim, &by.requester).await;
        drop(one_at_a_time);
        return result;
    }
    let agent =
        agents.index.by_id(claim.agent()).ok_or_else(|| unknown_agent_error(&agents.index, &claim.approval().agent))?;
    // Without reloading agent.json, which could wait for a destroy that waits for this approval.
    let claim = ensure_not_denied(&agent, claim).await?;
    Ok(ApproveResult {
        approval: claim.approve(None).await?.deliver(),
        always: false,
        profile_before: None,
        warnings: Vec::new(),
    })
}

/// Denies the action if the agent's profile denies it by now, since no approval overrides that.
async fn ensure_not_denied<'a>(agent: &AgentEntry, claim: Claim<'a>) -> Result<Claim<'a>> {
    let (profile, action) = (usable_profile(&agent.settings)?.clone(), claim.approval().action.clone());
    let dir = agent.settings.dir.join("workspace");
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

/// Approves the action and adds it to the agent's permissions. The caller must hold the agents lock.
async fn approve_always(editor: &AgentEditor, claim: Claim<'_>, by: &Requester) -> Result<ApproveResult> {
    let agents = &editor.agents;
    let agent =
        agents.index.by_id(claim.agent()).ok_or_else(|| unknown_agent_error(&agents.index, &claim.approval().agent))?;
    let agent = agents.reload_locked(agent).await?;
    let claim = ensure_not_denied(&agent, claim).await?;
    let new = permissions_with_action(&agent, claim.approval())?;
    let old = agent.permissions.clone();
    // Recorded before the change.
    let change = PermissionsChange { old: old.to_string(), new: new.to_string() };
    let recorded = claim.approve(Some(change)).await?;
    let profile_before = old.as_str().map(str::to_owned);
    let set = editor.set_permissions(&agent, new.clone()).await;
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
    Ok(ApproveResult {
        approval,
        always: set.is_ok(),
        profile_before: profile_before.filter(|_| set.is_ok()),
        warnings,
    })
}

/// Returns the agent's permissions extended by this action.
fn permissions_with_action(agent: &Arc<AgentEntry>, approval: &Approval) -> Result<Value> {
    let profile = usable_profile(&agent.settings)?;
    let with = || profile.with_always_allowed(&agent.permissions, &approval.action);
    approval.not_always.clone().map_or_else(with, Err).map_err(|why| {
        Error::new(ErrorKind::Denied, format!("cannot approve it permanently: {why}")).hint(hints::APPROVE_ONCE)
    })
}
