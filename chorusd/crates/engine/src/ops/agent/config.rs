//! The operation `agent.config`.

use std::sync::Arc;

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};
use chorus_base::private_fs::move_dir;
use chorus_base::requester::Requester;
use chorus_catalog::{AgentTable, AuditDecision};
use chorus_config::agent::{AgentConfig, SETTABLE_KEYS, check_name};
use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::{ConfigParams, ConfigResult};
use chorus_runtime::run_blocking;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::init::write_config;
use super::{AGENTS_DIR, AgentEditor, discord_channel, ensure_may_grant};
use crate::agent::agent_index::AgentEntry;
use crate::ops::approvals::deny_outdated;
use crate::ops::resolve_agent;
use crate::ops::settings::EffectiveConfig;

/// Keys whose changes are always recorded in the audit log: they decide what an agent may do, what it is told, and
/// which model answers.
const AUDITED_KEYS: [&str; 3] = ["permissions", "model", "system_prompt"];

/// Reads or sets one key of agent.json; setting `name` renames the agent.
pub async fn config(editor: &AgentEditor, params: ConfigParams) -> Result<ConfigResult> {
    config_as(editor, params, &Requester::Owner).await
}

/// Like [`config`], on behalf of `by`, who must be allowed to grant the permissions. Every change by a requester other
/// than the owner is recorded in the audit log.
///
/// # Errors
/// As [`config`]; `denied` for permissions that `by` may not grant.
pub async fn config_as(editor: &AgentEditor, params: ConfigParams, by: &Requester) -> Result<ConfigResult> {
    let agent = editor.agents.resolve(Some(&params.name)).await?;
    let Some(value) = params.value else {
        return get_config(editor, &agent, params.key.as_deref()).await;
    };
    let key = params.key.ok_or_else(|| Error::invalid("`value` requires `key`"))?;
    let bound = if key == "channel_id" {
        Some(discord_channel::resolve_binding(&editor.agents.discord, &agent, &value).await?)
    } else {
        None
    };
    let done = set_as(editor, (params.name, key, value), bound, &agent, by).await;
    if let (Err(_), Some(bound)) = (&done, bound) {
        bound.delete_if_new(&editor.agents.discord).await;
    }
    done
}

/// Sets one key of an agent under the agents lock. `bound` is the channel that the agent gets, if the key is
/// `channel_id`.
async fn set_as(
    editor: &AgentEditor,
    (name, key, value): (String, String, Value),
    bound: Option<discord_channel::ChannelBinding>,
    agent: &AgentEntry,
    by: &Requester,
) -> Result<ConfigResult> {
    let _one_at_a_time = editor.agents.lock.lock().await;
    // The agent may have been renamed or destroyed since, and its directory may belong to another agent now.
    let agent = editor
        .agents
        .index
        .by_id(agent.settings.id)
        .ok_or_else(|| resolve_agent::unknown_agent_error(&editor.agents.index, &name))?;
    let agent = editor.agents.reload_locked(agent).await?;
    if let Some(bound) = bound {
        if *by != Requester::Owner {
            editor
                .store
                .catalog
                .audit
                .append(discord_channel::audit_row_of_binding(
                    &bound,
                    audit_row_of_change(editor.clock.now(), &agent, by, &key),
                    &agent,
                ))
                .await?;
        }
        return discord_channel::bind_channel(editor, &agent, &bound).await;
    }
    if key == "name" {
        let name = value
            .as_str()
            .ok_or_else(|| Error::invalid("`name` must be a string").hint("for example \"data-team\""))?;
        if *by != Requester::Owner {
            check_name(name)?;
            let (old, new) = (Some(agent.settings.name.clone()), Some(name.to_owned()));
            editor
                .store
                .catalog
                .audit
                .append(AuditDecision { old, new, ..audit_row_of_change(editor.clock.now(), &agent, by, &key) })
                .await?;
        }
        return rename_agent(editor, &agent, name).await;
    }
    if key == "permissions" {
        let is_default = value.is_null() || value.as_str() == Some("");
        let granted =
            if is_default { editor.agents.config.current().defaults.permissions.clone().into() } else { value.clone() };
        ensure_may_grant(&editor.config.current(), by, &granted)?;
    }
    let audit_row = (*by != Requester::Owner || AUDITED_KEYS.contains(&&*key))
        .then(|| audit_row_of_change(editor.clock.now(), &agent, by, &key));
    let done = editor.set_key(&agent, key, value, audit_row).await?;
    deny_outdated(&editor.agents.index, &editor.agents.approvals, &agent).await;
    Ok(done)
}

/// Builds the audit row of a change.
fn audit_row_of_change(at: Timestamp, agent: &AgentEntry, by: &Requester, key: &str) -> AuditDecision {
    AuditDecision {
        at,
        agent: agent.settings.id,
        agent_name: agent.settings.name.clone(),
        turn: None,
        action: format!("agent.config:{key}"),
        decision: "changed".into(),
        rule: "agent config".into(),
        user: by.to_string(),
        old: None,
        new: None,
    }
}

/// Returns the effective configuration of an agent and the number of its sessions.
pub async fn effective_config(
    table: &Arc<dyn AgentTable>,
    defaults: &EffectiveConfig,
    agent: &AgentEntry,
) -> Result<(AgentConfig, u64)> {
    let row = table.list_by_id(vec![agent.settings.id]).await?.pop();
    let row = row.ok_or_else(|| Error::internal(format!("agent {} is not in the catalog", agent.settings.name)))?;
    let config = AgentConfig::parse(&row.config, &defaults.current())
        .map_err(|e| Error::internal(format!("agent.json of {} {e}", agent.settings.name)))?;
    Ok((config, row.sessions))
}

async fn get_config(editor: &AgentEditor, agent: &Arc<AgentEntry>, key: Option<&str>) -> Result<ConfigResult> {
    let (config, _) = effective_config(&editor.agents.table, &editor.agents.config, agent).await?;
    let config = match key {
        None => config.map().clone(),
        Some(key) => {
            let exists = config.map().contains_key(key) || SETTABLE_KEYS.contains(&key);
            if !exists {
                let failure = Error::new(ErrorKind::NotFound, format!("{} has no key `{key}`", agent.settings.name));
                let keys = config.map().keys().map(String::as_str);
                return Err(match closest_match(key, keys) {
                    Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
                    None => failure.hint(format!("list all keys: chorusctl agent config {}", agent.settings.name)),
                });
            }
            Map::from_iter([(key.to_owned(), config.map().get(key).cloned().unwrap_or_default())])
        }
    };
    Ok(ConfigResult { agent: editor.describer.describe(agent).await?, config, old: None })
}

/// Renames an agent: moves its directory and its row. Session files keep the agent name under which they were saved.
fn rename_agent<'a>(
    editor: &'a AgentEditor,
    agent: &'a Arc<AgentEntry>,
    name: &'a str,
) -> BoxFuture<'a, Result<ConfigResult>> {
    Box::pin(async move {
        check_name(name)?;
        let old = agent.settings.name.clone();
        let (from, to) = (agent.settings.dir.clone(), editor.agents.home.join(AGENTS_DIR).join(name));
        if name != old && (editor.agents.index.by_name(name).is_some() || to.symlink_metadata().is_ok()) {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("{name} already exists"))
                .hint("choose another name; or move the existing directory"));
        }
        if name == old {
            return get_config(editor, agent, Some("name")).await;
        }
        // Nothing may write into the directory while it moves: neither the agent nor an import or a tag.
        let _no_writers = editor.sessions_lock.write().await;
        let held = editor.registry.hold_agent(&agent.settings, None).await?;
        let draft = editor.draft_config(agent, vec![("name", name.into())]).await?;
        let (config, before) = (draft.config, draft.previous_file);
        // The directory moves first. If the rename is interrupted then, the next start recognises it by the directory's
        // name (`catalog_sync::sync_agents`).
        let moved = {
            let (from, to) = (from.clone(), to.clone());
            run_blocking(move || {
                let failed = |e: &std::io::Error| Error::io(format_args!("cannot rename to {}", to.display()), e);
                move_dir(&from, &to).map_err(|e| failed(&e))?;
                let stamp = write_config(&to, &config).map_err(|e| failed(&e))?;
                Ok((config, stamp))
            })
            .await
        };
        let adopted = match moved {
            Ok(file) => editor.adopt_config(to.clone(), file).await,
            Err(failure) => Err(failure),
        };
        let adopted = match adopted {
            Ok(adopted) => adopted,
            Err(failure) => {
                let undone = run_blocking(move || {
                    let io = |e: std::io::Error| Error::io("cannot undo a rename", &e);
                    if !from.exists() {
                        move_dir(&to, &from).map_err(io)?;
                    }
                    before.restore().map_err(io)
                });
                if let Err(undo) = undone.await {
                    tracing::error!(agent = %old, failure = %undo, "cannot undo a failed rename");
                }
                return Err(failure);
            }
        };
        drop(held);
        tracing::info!(agent = %name, was = %old, "agent renamed");
        discord_channel::rename_channel(&editor.agents.discord, &editor.store.catalog.discord.channels, &adopted.0)
            .await;
        let config = Map::from_iter([("name".to_owned(), Value::from(name))]);
        Ok(ConfigResult { agent: editor.describer.describe_changed(&adopted.0).await, config, old: Some(old.into()) })
    })
}
