//! Lets an agent change its own configuration as `agent config` would. The requester of the turn must be allowed to
//! grant the change, which is recorded in the audit log.

use chorus_base::error::{Error, Result};
use chorus_catalog::AuditDecision;
use chorus_proto::ErrorKind;
use chorus_runtime::run_blocking;
use serde_json::Value;

use crate::ops::Ops;
use crate::ops::approvals::deny_outdated;
use crate::tools::{SelfEdit, ToolCaller};

/// Makes the change.
///
/// # Errors
/// `denied` if the requester may not grant it, otherwise as `agent.config`.
pub(super) async fn self_edit(ops: &Ops, asker: ToolCaller, edit: SelfEdit) -> Result<()> {
    let (key, value) = match edit {
        SelfEdit::SystemPrompt(prompt) => ("system_prompt", Value::String(prompt)),
        SelfEdit::Permissions(wanted) => {
            ops.defaults()
                .grants
                .check_grant(&asker.requester, &wanted)
                .map_err(|why| Error::new(ErrorKind::Denied, why))?;
            ("permissions", wanted)
        }
        SelfEdit::Model(model) => {
            ensure_callable(ops, &model).await?;
            ("model", Value::String(model))
        }
    };
    // Cancellable, because an operation that destroys the agent holds the lock until this turn has ended.
    let _one_at_a_time = tokio::select! {
        biased;
        () = asker.cancel.cancelled() => {
            return Err(Error::new(ErrorKind::Interrupted, "the turn ended before the change"));
        }
        lock = ops.agent_resolver.lock.lock() => lock,
    };
    let gone = || Error::agent_destroyed();
    let agent = ops.agent_resolver.reload_locked(ops.agents.by_id(asker.agent).ok_or_else(gone)?).await?;
    let row = AuditDecision {
        at: ops.clock.now(),
        agent: asker.agent,
        agent_name: asker.agent_name,
        turn: Some(asker.turn),
        action: asker.action,
        decision: "changed".into(),
        rule: "the agent changed its own settings".into(),
        user: asker.requester.to_string(),
        old: None,
        new: None,
    };
    ops.agent_editor.set_key(&agent, key.into(), value, Some(row)).await?;
    deny_outdated(&ops.agents, &ops.approvals, &agent).await;
    tracing::info!(agent = %agent.settings.name, key, "the agent changed its own settings");
    Ok(())
}

/// Checks that a model can be called: its provider is configured and has a key.
async fn ensure_callable(ops: &Ops, model: &str) -> Result<()> {
    let target = ops.models.resolve(model)?;
    let models = ops.models.clone();
    let keys = run_blocking(move || Ok(models.check_keys())).await?;
    match keys.into_iter().find(|key| key.provider == target.provider).map(|key| key.found) {
        Some(Err(error)) => {
            let failure = Error::new(ErrorKind::ModelUnavailable, error.message);
            Err(match error.hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            })
        }
        _ => Ok(()),
    }
}
