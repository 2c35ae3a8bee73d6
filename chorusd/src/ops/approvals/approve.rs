//! `approvals.approve`.

use std::sync::Arc;

use chorus_proto::ErrorKind;
use chorus_proto::methods::approvals::{Approval, ApproveParams, ApproveResult};
use chorus_proto::methods::permissions::Decision;
use serde_json::Value;

use crate::agent::directory::Entry;
use crate::approvals::{Change, Claim};
use crate::failure::{Failure, Result};
use crate::ops::agent::config::set_permissions;
use crate::ops::agent::{refresh, refresh_alone};
use crate::ops::permissions::usable;
use crate::ops::{Ops, blocking, select};
use crate::store::catalog::Audit;
use crate::tools::workspace_paths;
use crate::who::{Answerer, Requester};

/// Lets what was asked be done, once; with `always` from now on.
///
/// # Errors
/// `not_found`, `conflict`, `expired`; `denied` where the agent's profile denies it by now, or `always` cannot work: it stays open
/// then. An answer that cannot be written down denies it.
pub async fn approve(ops: &Ops, params: ApproveParams) -> Result<ApproveResult> {
    approve_by(ops, params, &Requester::Owner.into()).await
}

/// As [`approve`], for somebody else than the owner: for ever only as an approver, because that changes the permissions.
///
/// # Errors
/// As [`approve`]; `denied` also for one who may not answer it.
pub async fn approve_by(ops: &Ops, params: ApproveParams, by: &Answerer) -> Result<ApproveResult> {
    if params.always && !by.approver && by.who != Requester::Owner {
        return Err(Failure::new(ErrorKind::Denied, "only an approver may allow it for ever")
            .hint("allow it once; `approvers` of `[discord]` says which roles approve"));
    }
    if let Some(agent) = ops.registry.world.approvals.asks(&params.id).and_then(|id| ops.directory.by_id(id)) {
        // An edit of its agent.json that nobody has looked at closes it.
        refresh(ops, agent).await?;
    }
    // Before the question is taken: a destroy that holds the lock waits for the turn, and with it for the question.
    let one_at_a_time = if params.always { Some(ops.agents_lock.lock().await) } else { None };
    let claim = ops.registry.world.approvals.claim(&params.id, by, params.hash.as_deref()).await?;
    if params.always {
        let done = always(ops, claim, &by.who).await;
        drop(one_at_a_time);
        return done;
    }
    let agent =
        ops.directory.by_id(claim.agent()).ok_or_else(|| select::unknown_agent(ops, &claim.approval().agent))?;
    // Not read again from its file: that may wait for a destroy, which waits for this question.
    let claim = still_asked(&agent, claim).await?;
    Ok(ApproveResult {
        approval: claim.approve(None).await?.tell(),
        always: false,
        profile_before: None,
        warnings: Vec::new(),
    })
}

/// What the profile denies by now, no approval lets through.
async fn still_asked<'a>(agent: &Entry, claim: Claim<'a>) -> Result<Claim<'a>> {
    let (profile, action) = (usable(&agent.facts)?.clone(), claim.approval().action.clone());
    let dir = agent.facts.dir.join("workspace");
    let decision = blocking(move || Ok(profile.judge_in(&action, &workspace_paths(&dir)).decision)).await?;
    if decision != Decision::Deny {
        return Ok(claim);
    }
    let name = agent.facts.name.clone();
    claim.deny("the agent's profile denies it by now").await?;
    Err(Failure::new(ErrorKind::Denied, format!("the profile of {name} denies it by now; it was refused"))
        .hint(format!("`chorusctl agent config {name} permissions` shows the profile")))
}

/// For whoever holds the lock on agents.
async fn always(ops: &Ops, claim: Claim<'_>, by: &Requester) -> Result<ApproveResult> {
    let agent =
        ops.directory.by_id(claim.agent()).ok_or_else(|| select::unknown_agent(ops, &claim.approval().agent))?;
    let agent = refresh_alone(ops, agent).await?;
    let claim = still_asked(&agent, claim).await?;
    let new = own(&agent, claim.approval())?;
    let old = agent.permissions.clone();
    // Written down before it is so.
    let change = Change { old: old.to_string(), new: new.to_string() };
    let noted = claim.approve(Some(change)).await?;
    let profile_before = old.as_str().map(str::to_owned);
    let set = set_permissions(ops, &agent, new.clone()).await;
    let approval = noted.approval.clone();
    let mut warnings = Vec::new();
    if let Err(failure) = &set {
        warnings.push(format!("it was approved once, but not for ever: {failure}"));
        let row = Audit {
            at: ops.clock.now(),
            agent: agent.facts.id,
            agent_name: agent.facts.name.clone(),
            turn: Some(approval.turn_id),
            action: approval.action.clone(),
            decision: "not_changed".into(),
            rule: failure.to_string(),
            user: by.to_string(),
            old: Some(new.to_string()),
            new: Some(old.to_string()),
        };
        if let Err(failure) = ops.store.catalog.audit(row).await {
            tracing::warn!(%failure, "that a change failed cannot be written down");
        }
    }
    drop(noted);
    Ok(ApproveResult {
        approval,
        always: set.is_ok(),
        profile_before: profile_before.filter(|_| set.is_ok()),
        warnings,
    })
}

/// The agent's permissions with this action more.
fn own(agent: &Arc<Entry>, asked: &Approval) -> Result<Value> {
    let profile = usable(&agent.facts)?;
    let with = || profile.with_always(&agent.permissions, &asked.action);
    asked.not_always.clone().map_or_else(with, Err).map_err(|why| {
        Failure::new(ErrorKind::Denied, format!("it cannot be approved for ever: {why}"))
            .hint("it still waits: approve it once, without --always")
    })
}
