//! The operation `settings.set`.

use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_catalog::AuditDecision;
use chorus_clock::Clock;
use chorus_config::agent::AgentConfig;
use chorus_config::{Origin, resolve_setting};
use chorus_llm::Models;
use chorus_proto::methods::settings::{SetParams, SetResult};
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::EffectiveConfig;
use crate::agent::agent_index::AgentEntry;
use crate::agent::registry::Registry;
use crate::ops::agent::{self, AgentResolver};
use crate::ops::approvals::deny_outdated;
use crate::ops::hints;

/// The command that the audit log names unless the request does.
const DEFAULT_COMMAND: &str = "settings set";
/// Maximum length of the name of a command.
const MAX_COMMAND_BYTES: usize = 40;

/// Sets a default for agents that do not set the key themselves, from now on and after restarts. An empty value removes
/// the setting.
pub async fn set(
    config: &EffectiveConfig,
    agents: &AgentResolver,
    models: &Models,
    registry: &Arc<Registry>,
    clock: &Clock,
    params: SetParams,
) -> Result<SetResult> {
    set_as(config, agents, models, registry, clock, (params, &Requester::Owner)).await
}

/// Like [`set`], on behalf of `by`, who must be allowed to grant the permissions.
///
/// # Errors
/// As [`set`]; `denied` for permissions that `by` may not grant.
pub async fn set_as(
    config: &EffectiveConfig,
    agents: &AgentResolver,
    models: &Models,
    registry: &Arc<Registry>,
    clock: &Clock,
    (params, by): (SetParams, &Requester),
) -> Result<SetResult> {
    let base = &*config.base();
    let (name, key) = resolve_setting(&params.key)?;
    let command = params.command.unwrap_or_else(|| DEFAULT_COMMAND.to_owned());
    if !is_command(&command) {
        return Err(Error::invalid("`command` is not the name of a command").hint("for example \"models add\""));
    }
    let value = to_text(params.value)?;
    if name == "permissions" {
        let without = || base.defaults.permissions.clone();
        agent::ensure_may_grant(base, by, &value.clone().unwrap_or_else(without).into())?;
    }
    if let Some(value) = &value {
        let wrong = |e| Error::invalid(format!("`{name}` {e}")).hint(hints::RESET_SETTING);
        base.with_setting(name, value).map_err(wrong)?;
        if name == "default_model" {
            models.check_assignable(value)?;
        }
    }
    let _one_at_a_time = agents.lock.lock().await;
    let old = config.settings.get(name).await?;
    if old.is_none() && value.is_none() {
        let config = config.current();
        let setting = super::to_setting(&config, key.to_owned(), config.value(key).unwrap_or_default());
        return Ok(SetResult { setting, old, overridden_by: None });
    }
    // One commit: neither the change nor its audit row is stored without the other.
    config.settings.set_audited(name, audit_row(clock.now(), by, (name, command), old.clone(), value.clone())).await?;
    config.apply_settings().await?;
    apply_to_agents(agents, registry).await?;
    tracing::info!(setting = name, old, new = value, "setting changed");
    let config = config.current();
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
        _ => Err(Error::invalid("`value` must be a string").hint("for example \"30m\"; an empty string resets it")),
    }
}

/// Returns true if `text` can be the name of a command: words of lowercase letters.
fn is_command(text: &str) -> bool {
    text.len() <= MAX_COMMAND_BYTES
        && text.split(' ').all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase()))
}

pub(in crate::ops) fn audit_row(
    at: Timestamp,
    by: &Requester,
    (name, command): (&str, String),
    old: Option<String>,
    new: Option<String>,
) -> AuditDecision {
    AuditDecision {
        at,
        // Belongs to no agent.
        agent: Uuid::nil(),
        agent_name: String::new(),
        turn: None,
        action: format!("settings:{name}"),
        decision: "changed".into(),
        rule: command,
        user: by.to_string(),
        old,
        new,
    }
}

/// Applies the new defaults to agents. Idle timers restart if their duration has changed.
pub(in crate::ops) async fn apply_to_agents(agents: &AgentResolver, registry: &Arc<Registry>) -> Result<()> {
    let defaults = agents.config.current();
    for entry in agents.index.all() {
        let Some(row) = agents.table.list_by_id(vec![entry.settings.id]).await?.pop() else { continue };
        let Ok(config) = AgentConfig::parse(&row.config, &defaults) else { continue };
        let new = agent::agent_entry(&agents.home, &row.dir, &config, entry.config_stamp.clone());
        let facts = Arc::new(AgentSettings { name: entry.settings.name.clone(), ..(*new.settings).clone() });
        if *facts == *entry.settings && new.permissions == entry.permissions {
            continue;
        }
        // Problems of the file persist, but a problem of the profile may be solved by the new default.
        let of_file = entry.config_problem.clone().filter(|_| entry.settings.profile.is_ok());
        let problem = new.config_problem.clone().or(of_file);
        let timed = facts.idle_timeout != entry.settings.idle_timeout;
        let id = facts.id;
        agents.index.insert(AgentEntry { settings: facts, config_problem: problem, ..new });
        deny_outdated(&agents.index, &agents.approvals, &entry).await;
        if timed {
            registry.update_idle_timeouts(id).await;
        }
    }
    Ok(())
}
