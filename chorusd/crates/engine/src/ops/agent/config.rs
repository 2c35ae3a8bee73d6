//! The operation `agent.config`.

use std::sync::Arc;

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};
use chorus_base::private_fs::{FileSnapshot, move_dir};
use chorus_base::requester::Requester;
use chorus_config::agent::{AGENT_FILE, AgentConfig, SETTABLE_KEYS, check_name, normalise};
use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::{ConfigParams, ConfigResult};
use chorus_runtime::run_blocking;
use chorus_store::catalog::{AgentTable, AuditDecision};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::init::write_config;
use super::{AGENTS_DIR, agent_entry, agent_row, discord_channel, ensure_may_grant};
use crate::agent::agent_index::AgentEntry;
use crate::agent::command;
use crate::ops::approvals::deny_outdated;
use crate::ops::settings::EffectiveConfig;
use crate::ops::{Ops, resolve_agent};

/// Keys whose changes are always recorded in the audit log: they decide what an agent may do, what it is told, and
/// which model answers.
const AUDITED_KEYS: [&str; 3] = ["permissions", "model", "system_prompt"];

/// Reads or sets one key of agent.json; setting `name` renames the agent.
pub async fn config(ops: &Ops, params: ConfigParams) -> Result<ConfigResult> {
    config_as(ops, params, &Requester::Owner).await
}

/// Like [`config`], on behalf of `by`, who must be allowed to grant the permissions. Every change by a requester other
/// than the owner is recorded in the audit log.
///
/// # Errors
/// As [`config`]; `denied` for permissions that `by` may not grant.
pub async fn config_as(ops: &Ops, params: ConfigParams, by: &Requester) -> Result<ConfigResult> {
    let agent = resolve_agent::agent(ops, Some(&params.name)).await?;
    let Some(value) = params.value else {
        return get_config(ops, &agent, params.key.as_deref()).await;
    };
    let key = params.key.ok_or_else(|| Error::invalid("`value` goes with `key`"))?;
    let bound =
        if key == "channel_id" { Some(discord_channel::resolve_binding(ops, &agent, &value).await?) } else { None };
    let done = set_as(ops, (params.name, key, value), bound, &agent, by).await;
    if let (Err(_), Some(bound)) = (&done, bound) {
        bound.delete_if_new(ops).await;
    }
    done
}

/// Sets one key of an agent under the agents lock. `bound` is the channel that the agent gets, if the key is
/// `channel_id`.
async fn set_as(
    ops: &Ops,
    (name, key, value): (String, String, Value),
    bound: Option<discord_channel::ChannelBinding>,
    agent: &AgentEntry,
    by: &Requester,
) -> Result<ConfigResult> {
    let _one_at_a_time = ops.agent_resolver.lock.lock().await;
    // The agent may have been renamed or destroyed since, and its directory may belong to another agent now.
    let agent =
        ops.agents.by_id(agent.settings.id).ok_or_else(|| resolve_agent::unknown_agent_error(&ops.agents, &name))?;
    let agent = ops.agent_resolver.reload_locked(agent).await?;
    if let Some(bound) = bound {
        if *by != Requester::Owner {
            ops.store
                .catalog
                .audit
                .append(discord_channel::audit_row_of_binding(
                    &bound,
                    audit_row_of_change(ops, &agent, by, &key),
                    &agent,
                ))
                .await?;
        }
        return discord_channel::bind_channel(ops, &agent, &bound).await;
    }
    if key == "name" {
        let name =
            value.as_str().ok_or_else(|| Error::invalid("a name is a text").hint("for example \"data-team\""))?;
        if *by != Requester::Owner {
            check_name(name)?;
            let (old, new) = (Some(agent.settings.name.clone()), Some(name.to_owned()));
            ops.store
                .catalog
                .audit
                .append(AuditDecision { old, new, ..audit_row_of_change(ops, &agent, by, &key) })
                .await?;
        }
        return rename_agent(ops, &agent, name).await;
    }
    if key == "permissions" {
        let unsaid = value.is_null() || value.as_str() == Some("");
        let granted = if unsaid { ops.defaults().defaults.permissions.clone().into() } else { value.clone() };
        ensure_may_grant(&ops.config, by, &granted)?;
    }
    let noted =
        (*by != Requester::Owner || AUDITED_KEYS.contains(&&*key)).then(|| audit_row_of_change(ops, &agent, by, &key));
    let done = set_key(ops, &agent, key, value, noted).await?;
    deny_outdated(&ops.agents, &ops.approvals, &agent).await;
    Ok(done)
}

/// Builds the audit row of a change.
fn audit_row_of_change(ops: &Ops, agent: &AgentEntry, by: &Requester, key: &str) -> AuditDecision {
    AuditDecision {
        at: ops.clock.now(),
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
    table: &AgentTable,
    defaults: &EffectiveConfig,
    agent: &AgentEntry,
) -> Result<(AgentConfig, u64)> {
    let row = table.list_by_id(vec![agent.settings.id]).await?.pop();
    let row = row.ok_or_else(|| Error::internal(format!("the agent {} has no row", agent.settings.name)))?;
    let config = AgentConfig::parse(&row.config, &defaults.current())
        .map_err(|e| Error::internal(format!("agent.json of {} {e}", agent.settings.name)))?;
    Ok((config, row.sessions))
}

async fn get_config(ops: &Ops, agent: &Arc<AgentEntry>, key: Option<&str>) -> Result<ConfigResult> {
    let (config, _) = effective_config(&ops.store.catalog.agents, &ops.effective_config, agent).await?;
    let config = match key {
        None => config.map().clone(),
        Some(key) => {
            let known = config.map().contains_key(key) || SETTABLE_KEYS.contains(&key);
            if !known {
                let failure = Error::new(ErrorKind::NotFound, format!("{} has no key `{key}`", agent.settings.name));
                let keys = config.map().keys().map(String::as_str);
                return Err(match closest_match(key, keys) {
                    Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
                    None => failure.hint(format!("`chorusctl agent config {}` shows all", agent.settings.name)),
                });
            }
            Map::from_iter([(key.to_owned(), config.map().get(key).cloned().unwrap_or_default())])
        }
    };
    Ok(ConfigResult { agent: ops.agent_describer.describe(agent).await?, config, old: None })
}

/// Sets the permissions of an agent, which the caller has checked. The caller must hold the agents lock and have
/// reloaded agent.json. If it fails, nothing has changed.
pub(in crate::ops) async fn set_permissions(ops: &Ops, agent: &Arc<AgentEntry>, permissions: Value) -> Result<()> {
    set_key(ops, agent, "permissions".into(), permissions, None).await.map(drop)
}

/// Sets one key; the caller must hold the agents lock. With `noted`, the change is recorded in the audit log first, and
/// is not made if that fails.
pub fn set_key<'a>(
    ops: &'a Ops,
    agent: &'a Arc<AgentEntry>,
    key: String,
    value: Value,
    noted: Option<AuditDecision>,
) -> BoxFuture<'a, Result<ConfigResult>> {
    Box::pin(async move {
        let value = normalise(&key, value, &ops.config.profiles)?;
        if let Some(model) = value.as_str().filter(|_| key == "model") {
            ops.models.check_assignable(model)?;
        }
        let draft = draft_config(ops, agent, vec![(&key, value.clone())]).await?;
        let row =
            noted.map(|row| AuditDecision { old: Some(draft.old.to_string()), new: Some(value.to_string()), ..row });
        if let Some(row) = &row {
            ops.store.catalog.audit.append(row.clone()).await?;
        }
        let done = apply_draft(ops, agent, draft).await;
        if let (Err(failure), Some(row)) = (&done, row) {
            let row = AuditDecision {
                at: ops.clock.now(),
                decision: "not_changed".into(),
                rule: failure.message.clone(),
                ..row
            };
            if let Err(failure) = ops.store.catalog.audit.append(row).await {
                tracing::error!(agent = %agent.settings.name, %failure, "that a change failed could not be written down");
            }
        }
        let (new, config, old) = done?;
        if key == "idle_timeout"
            && ops.registry.context_info(agent.settings.id).is_some()
            && let Err(failure) = ops.registry.ask(agent.settings.id, command::update_idle_timeout()).await
        {
            tracing::warn!(agent = %agent.settings.name, %failure, "the new idle timeout holds from the next message on");
        }
        let shown = Map::from_iter([(key.clone(), config.map().get(&key).cloned().unwrap_or_default())]);
        Ok(ConfigResult { agent: ops.agent_describer.describe_changed(&new).await, config: shown, old: Some(old) })
    })
}

/// Writes a draft and puts it into effect, or restores the previous file.
async fn apply_draft(
    ops: &Ops,
    agent: &AgentEntry,
    draft: ConfigDraft,
) -> Result<(Arc<AgentEntry>, AgentConfig, Value)> {
    let WrittenConfig { file, previous_file: before, old } = write_draft(agent, draft).await?;
    match adopt_config(ops, agent.settings.dir.clone(), file).await {
        Ok((entry, config)) => Ok((entry, config, old)),
        Err(failure) => {
            let undone =
                run_blocking(move || before.restore().map_err(|e| Error::io("agent.json cannot be put back", &e)));
            if let Err(undo) = undone.await {
                tracing::error!(agent = %agent.settings.name, failure = %undo, "a failed setting could not be undone");
            }
            Err(failure)
        }
    }
}

/// An agent.json in which one key is to be changed.
struct ConfigDraft {
    config: AgentConfig,
    previous_file: FileSnapshot,
    /// The previous value.
    old: Value,
}

/// An agent.json in which one key was changed.
struct WrittenConfig {
    /// The configuration with the stamp of the file.
    file: (AgentConfig, String),
    previous_file: FileSnapshot,
    /// The previous value.
    old: Value,
}

/// Reads agent.json from disk and changes keys in memory. `old` is the previous value of the first key.
async fn draft_config(ops: &Ops, agent: &AgentEntry, pairs: Vec<(&str, Value)>) -> Result<ConfigDraft> {
    if let Some(problem) = agent.config_problem.as_ref().filter(|problem| problem.contains("last good")) {
        return Err(Error::new(ErrorKind::InvalidConfig, problem.clone()).hint("mend agent.json by hand first"));
    }
    let (path, defaults) = (agent.settings.dir.join(AGENT_FILE), ops.defaults());
    let pairs: Vec<(String, Value)> = pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    run_blocking(move || {
        let before = FileSnapshot::read(path.clone())
            .map_err(|e| Error::io(format_args!("cannot read {}", path.display()), &e))?;
        let mut map: Map<String, Value> = serde_json::from_str(&before.text)
            .map_err(|e| Error::new(ErrorKind::InvalidConfig, format!("agent.json is no JSON object: {e}")))?;
        let mut before_it = pairs.into_iter().map(|(key, value)| map.insert(key, value).unwrap_or_default());
        let old = before_it.next().unwrap_or_default();
        before_it.for_each(drop);
        let config = AgentConfig::from_map(map, &defaults)
            .map_err(|e| Error::new(ErrorKind::InvalidConfig, format!("agent.json {e}")))?;
        Ok(ConfigDraft { config, previous_file: before, old })
    })
    .await
}

async fn write_draft(
    agent: &AgentEntry,
    ConfigDraft { config, previous_file: before, old }: ConfigDraft,
) -> Result<WrittenConfig> {
    let dir = agent.settings.dir.clone();
    run_blocking(move || {
        let stamp = write_config(&dir, &config)
            .map_err(|e| Error::io(format_args!("cannot write {}", dir.join(AGENT_FILE).display()), &e))?;
        Ok(WrittenConfig { file: (config, stamp), previous_file: before, old })
    })
    .await
}

/// Writes the agent's running tasks into agent.json; the caller must hold the agents lock. A file that lists them
/// already is not touched.
pub async fn write_running_tasks(ops: &Ops, agent: &AgentEntry, running: Vec<Value>) -> Result<()> {
    let (config, _) = effective_config(&ops.store.catalog.agents, &ops.effective_config, agent).await?;
    let listed = config.map().get("running_tasks").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if listed == running {
        return Ok(());
    }
    let rewritten = rewrite_key(ops, agent, "running_tasks", running.into()).await?;
    adopt_config(ops, agent.settings.dir.clone(), rewritten.file).await.map(drop)
}

/// Removes all running tasks from the agent.json of an agent that is about to be destroyed.
pub async fn clear_running_tasks(ops: &Ops, agent: &AgentEntry) -> Result<()> {
    rewrite_key(ops, agent, "running_tasks", Value::Array(Vec::new())).await.map(drop)
}

/// Changes one key of agent.json on disk.
async fn rewrite_key(ops: &Ops, agent: &AgentEntry, key: &str, value: Value) -> Result<WrittenConfig> {
    write_draft(agent, draft_config(ops, agent, vec![(key, value)]).await?).await
}

/// Sets several keys at once, whose values the caller has checked; the caller must hold the agents lock. Returns the
/// previous value of the first key. If it fails, nothing has changed.
pub(super) async fn set_keys(
    ops: &Ops,
    agent: &AgentEntry,
    pairs: Vec<(&str, Value)>,
) -> Result<(Arc<AgentEntry>, AgentConfig, Value)> {
    apply_draft(ops, agent, draft_config(ops, agent, pairs).await?).await
}

/// Puts a configuration that is on disk into the catalog and the agent index.
async fn adopt_config(
    ops: &Ops,
    dir: std::path::PathBuf,
    (config, stamp): (AgentConfig, String),
) -> Result<(Arc<AgentEntry>, AgentConfig)> {
    let relative = dir.strip_prefix(&ops.home).unwrap_or(&dir).to_string_lossy().into_owned();
    ops.store.catalog.agents.upsert(agent_row(&relative, &config, stamp.clone())).await?;
    Ok((ops.agents.insert(agent_entry(&ops.home, &relative, &config, stamp)), config))
}

/// Renames an agent: moves its directory and its row. Session files keep the agent name under which they were saved.
fn rename_agent<'a>(ops: &'a Ops, agent: &'a Arc<AgentEntry>, name: &'a str) -> BoxFuture<'a, Result<ConfigResult>> {
    Box::pin(async move {
        check_name(name)?;
        let old = agent.settings.name.clone();
        let (from, to) = (agent.settings.dir.clone(), ops.home.join(AGENTS_DIR).join(name));
        if name != old && (ops.agents.by_name(name).is_some() || to.symlink_metadata().is_ok()) {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("{name} is taken"))
                .hint("choose another name, or move the directory of that name elsewhere"));
        }
        if name == old {
            return get_config(ops, agent, Some("name")).await;
        }
        // Nothing may write into the directory while it moves: neither the agent nor an import or a tag.
        let _no_writers = ops.sessions_lock.write().await;
        let held = ops.registry.ask(agent.settings.id, command::hold(false)).await?;
        let draft = draft_config(ops, agent, vec![("name", name.into())]).await?;
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
            Ok(file) => adopt_config(ops, to.clone(), file).await,
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
                    tracing::error!(agent = %old, failure = %undo, "a failed rename could not be undone");
                }
                return Err(failure);
            }
        };
        drop(held);
        tracing::info!(agent = %name, was = %old, "agent renamed");
        discord_channel::rename_channel(ops, &adopted.0).await;
        let config = Map::from_iter([("name".to_owned(), Value::from(name))]);
        Ok(ConfigResult {
            agent: ops.agent_describer.describe_changed(&adopted.0).await,
            config,
            old: Some(old.into()),
        })
    })
}
