//! The operation `settings.set`.

use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_config::agent::AgentConfig;
use chorus_config::{Origin, resolve_setting};
use chorus_proto::methods::settings::{SetParams, SetResult};
use chorus_store::catalog::AuditDecision;
use serde_json::Value;
use uuid::Uuid;

use crate::agent::agent_index::AgentEntry;
use crate::agent::command;
use crate::ops::approvals::deny_outdated;
use crate::ops::{Ops, agent};

/// Sets a default for agents that do not set the key themselves, from now on and after restarts. An empty value removes
/// the setting.
pub async fn set(ops: &Ops, params: SetParams) -> Result<SetResult> {
    set_as(ops, params, &Requester::Owner).await
}

/// Like [`set`], on behalf of `by`, who must be allowed to grant the permissions.
///
/// # Errors
/// As [`set`]; `denied` for permissions that `by` may not grant.
pub async fn set_as(ops: &Ops, params: SetParams, by: &Requester) -> Result<SetResult> {
    let (name, key) = resolve_setting(&params.key)?;
    let value = to_text(params.value)?;
    if name == "permissions" {
        let without = || ops.config.defaults.permissions.clone();
        agent::ensure_may_grant(ops, by, &value.clone().unwrap_or_else(without).into())?;
    }
    if let Some(value) = &value {
        let wrong = |e| Error::invalid(format!("`{name}` {e}")).hint("an empty value takes the setting back");
        ops.config.with_setting(name, value).map_err(wrong)?;
        if name == "default_model" {
            ops.models.check_assignable(value)?;
        }
    }
    let _one_at_a_time = ops.agents_lock.lock().await;
    let old = ops.store.catalog.settings.get(name).await?;
    // One commit: neither the change nor its audit row is stored without the other.
    ops.store.catalog.settings.set_audited(name, audit_row(ops, by, name, old.clone(), value.clone())).await?;
    ops.effective_config.reload().await?;
    apply_to_agents(ops).await?;
    tracing::info!(setting = name, old, new = value, "setting changed");
    let config = ops.defaults();
    let overridden_by = match config.origins.get(key) {
        Some(Origin::Environment(variable)) if value.is_some() => Some(variable.clone()),
        _ => None,
    };
    let setting = super::to_setting(&config, key.to_owned(), config.value(key).unwrap_or_default());
    Ok(SetResult { setting, old, overridden_by })
}

/// Converts a value into the text that a person would type; `None` if it is empty.
fn to_text(value: Value) -> Result<Option<String>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Value::Number(number) => Ok(Some(number.to_string())),
        _ => Err(Error::invalid("`value` must be a text").hint("for example \"30m\"; an empty one takes it back")),
    }
}

fn audit_row(ops: &Ops, by: &Requester, name: &str, old: Option<String>, new: Option<String>) -> AuditDecision {
    AuditDecision {
        at: ops.clock.now(),
        // Belongs to no agent.
        agent: Uuid::nil(),
        agent_name: String::new(),
        turn: None,
        action: format!("settings:{name}"),
        decision: "changed".into(),
        rule: "settings set".into(),
        user: by.to_string(),
        old,
        new,
    }
}

/// Applies the new defaults to agents. Idle timers restart if their duration has changed.
async fn apply_to_agents(ops: &Ops) -> Result<()> {
    let defaults = ops.defaults();
    for entry in ops.agents.all() {
        let Some(row) = ops.store.catalog.agents.list_by_id(vec![entry.settings.id]).await?.pop() else { continue };
        let Ok(config) = AgentConfig::parse(&row.config, &defaults) else { continue };
        let new = agent::agent_entry(&ops.home, &row.dir, &config, entry.config_stamp.clone());
        let facts = Arc::new(AgentSettings { name: entry.settings.name.clone(), ..(*new.settings).clone() });
        if *facts == *entry.settings && new.permissions == entry.permissions {
            continue;
        }
        // Problems of the file persist, but a problem of the profile may be solved by the new default.
        let of_file = entry.config_problem.clone().filter(|_| entry.settings.profile.is_ok());
        let problem = new.config_problem.clone().or(of_file);
        let timed = facts.idle_timeout != entry.settings.idle_timeout;
        let id = facts.id;
        ops.agents.insert(AgentEntry { settings: facts, config_problem: problem, ..new });
        deny_outdated(&ops.agents, &ops.approvals, &entry).await;
        if timed
            && ops.registry.context_info(id).is_some()
            && let Err(failure) = ops.registry.ask(id, command::update_idle_timeout()).await
        {
            tracing::warn!(agent = %entry.settings.name, %failure, "the new idle timeout holds from the next message on");
        }
    }
    Ok(())
}
