//! `agent.config`.

use std::sync::Arc;

use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::{ConfigParams, ConfigResult};
use serde_json::{Map, Value};

use super::init::put_config;
use super::{AGENTS, entry, may_grant, refresh_alone, room, row};
use crate::agent::directory::Entry;
use crate::agent::event::Verb;
use crate::config::agent::{AgentConfig, FILE, SETTABLE, check_name, normalise};
use crate::config::nearest;
use crate::failure::{Failure, Result};
use crate::ops::approvals::close_outdated;
use crate::ops::{Ops, blocking, select, view};
use crate::store::agents_dir::{Before, move_dir};
use crate::store::catalog::Audit;
use crate::who::Requester;

/// Keys whose changes are in the audit log, whoever makes them: what an agent may do, what it is told, and who answers for it.
const AUDITED: [&str; 3] = ["permissions", "model", "system_prompt"];

/// Reads or sets one key of agent.json; setting `name` renames the agent.
///
/// # Errors
/// `agent_not_found`, `invalid_params`, `invalid_name`, `model_unavailable`, `already_exists`, `storage_failed`.
pub async fn config(ops: &Ops, params: ConfigParams) -> Result<ConfigResult> {
    config_by(ops, params, &Requester::Owner).await
}

/// As [`config`], by `by`, who must be allowed to grant permissions that are set. Every change by somebody else than the owner is in the
/// audit log.
///
/// # Errors
/// As [`config`]; `denied` for permissions that `by` may not grant.
pub async fn config_by(ops: &Ops, params: ConfigParams, by: &Requester) -> Result<ConfigResult> {
    let agent = select::agent(ops, Some(&params.name)).await?;
    let Some(value) = params.value else {
        return get(ops, &agent, params.key.as_deref()).await;
    };
    let key = params.key.ok_or_else(|| Failure::invalid("`value` goes with `key`"))?;
    let bound = if key == "channel_id" { Some(room::look(ops, &agent, &value).await?) } else { None };
    let done = set_by(ops, (params.name, key, value), bound, &agent, by).await;
    if let (Err(_), Some(bound)) = (&done, bound) {
        bound.undo(ops).await;
    }
    done
}

/// Sets one key of an agent, under the lock on agents. `bound`: the channel that it gets, where it does.
async fn set_by(
    ops: &Ops,
    (name, key, value): (String, String, Value),
    bound: Option<room::Bound>,
    agent: &Entry,
    by: &Requester,
) -> Result<ConfigResult> {
    let _one_at_a_time = ops.agents_lock.lock().await;
    // Another rename may have come before, or an end, after which the directory may be another agent's.
    let agent = ops.directory.by_id(agent.facts.id).ok_or_else(|| select::unknown_agent(ops, &name))?;
    let agent = refresh_alone(ops, agent).await?;
    if let Some(bound) = bound {
        if *by != Requester::Owner {
            ops.store.catalog.audit(room::audited(&bound, change(ops, &agent, by, &key), &agent)).await?;
        }
        return room::bind(ops, &agent, &bound).await;
    }
    if key == "name" {
        let name =
            value.as_str().ok_or_else(|| Failure::invalid("a name is a text").hint("for example \"data-team\""))?;
        if *by != Requester::Owner {
            check_name(name)?;
            let (old, new) = (Some(agent.facts.name.clone()), Some(name.to_owned()));
            ops.store.catalog.audit(Audit { old, new, ..change(ops, &agent, by, &key) }).await?;
        }
        return rename(ops, &agent, name).await;
    }
    if key == "permissions" {
        let unsaid = value.is_null() || value.as_str() == Some("");
        let granted = if unsaid { ops.defaults().defaults.permissions.clone().into() } else { value.clone() };
        may_grant(ops, by, &granted)?;
    }
    let noted = (*by != Requester::Owner || AUDITED.contains(&&*key)).then(|| change(ops, &agent, by, &key));
    let done = set(ops, &agent, key, value, noted).await?;
    close_outdated(ops, &agent).await;
    Ok(done)
}

/// A change, as the audit log has it.
fn change(ops: &Ops, agent: &Entry, by: &Requester, key: &str) -> Audit {
    Audit {
        at: ops.clock.now(),
        agent: agent.facts.id,
        agent_name: agent.facts.name.clone(),
        turn: None,
        action: format!("agent.config:{key}"),
        decision: "changed".into(),
        rule: "agent config".into(),
        user: by.to_string(),
        old: None,
        new: None,
    }
}

/// The configuration in force and how many sessions there are.
///
/// # Errors
/// A database that cannot be read.
pub async fn in_force(ops: &Ops, agent: &Entry) -> Result<(AgentConfig, u64)> {
    let row = ops.store.catalog.agents_by_id(vec![agent.facts.id]).await?.pop();
    let row = row.ok_or_else(|| Failure::internal(format!("the agent {} has no row", agent.facts.name)))?;
    let config = AgentConfig::parse(&row.config, &ops.defaults())
        .map_err(|e| Failure::internal(format!("agent.json of {} {e}", agent.facts.name)))?;
    Ok((config, row.sessions))
}

async fn get(ops: &Ops, agent: &Arc<Entry>, key: Option<&str>) -> Result<ConfigResult> {
    let (config, _) = in_force(ops, agent).await?;
    let config = match key {
        None => config.map().clone(),
        Some(key) => {
            let known = config.map().contains_key(key) || SETTABLE.contains(&key);
            if !known {
                let failure = Failure::new(ErrorKind::NotFound, format!("{} has no key `{key}`", agent.facts.name));
                let keys = config.map().keys().map(String::as_str);
                return Err(match nearest(key, keys) {
                    Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
                    None => failure.hint(format!("`chorusctl agent config {}` shows all", agent.facts.name)),
                });
            }
            Map::from_iter([(key.to_owned(), config.map().get(key).cloned().unwrap_or_default())])
        }
    };
    Ok(ConfigResult { agent: view::agent(ops, agent).await?, config, old: None })
}

/// Gives the agent these permissions; they were checked. For whoever holds the lock on agents and has read the file again.
///
/// # Errors
/// As [`config`]; nothing is changed then.
pub(in crate::ops) async fn set_permissions(ops: &Ops, agent: &Arc<Entry>, permissions: Value) -> Result<()> {
    set(ops, agent, "permissions".into(), permissions, None).await.map(drop)
}

/// Sets one key, for whoever holds the lock on agents. With `noted` the change is written down before it is made: what cannot be is
/// not done.
///
/// # Errors
/// As [`config`].
pub async fn set(
    ops: &Ops,
    agent: &Arc<Entry>,
    key: String,
    value: Value,
    noted: Option<Audit>,
) -> Result<ConfigResult> {
    let value = normalise(&key, value, &ops.config.profiles)?;
    if let Some(model) = value.as_str().filter(|_| key == "model") {
        ops.models.admit(model)?;
    }
    let draft = draft(ops, agent, vec![(&key, value.clone())]).await?;
    let row = noted.map(|row| Audit { old: Some(draft.old.to_string()), new: Some(value.to_string()), ..row });
    if let Some(row) = &row {
        ops.store.catalog.audit(row.clone()).await?;
    }
    let done = carry_out(ops, agent, draft).await;
    if let (Err(failure), Some(row)) = (&done, row) {
        let row = Audit { at: ops.clock.now(), decision: "not_changed".into(), rule: failure.message.clone(), ..row };
        if let Err(failure) = ops.store.catalog.audit(row).await {
            tracing::error!(agent = %agent.facts.name, %failure, "that a change failed could not be written down");
        }
    }
    let (new, config, old) = done?;
    if key == "idle_timeout"
        && ops.registry.info(agent.facts.id).is_some()
        && let Err(failure) = ops.registry.ask(agent.facts.id, Verb::Retime).await
    {
        tracing::warn!(agent = %agent.facts.name, %failure, "the new idle timeout holds from the next message on");
    }
    let shown = Map::from_iter([(key.clone(), config.map().get(&key).cloned().unwrap_or_default())]);
    Ok(ConfigResult { agent: view::changed(ops, &new).await, config: shown, old: Some(old) })
}

/// Writes a draft and puts it in force, or leaves all as it was.
async fn carry_out(ops: &Ops, agent: &Entry, draft: Draft) -> Result<(Arc<Entry>, AgentConfig, Value)> {
    let Rewritten { file, before, old } = write(agent, draft).await?;
    match adopt(ops, agent.facts.dir.clone(), file).await {
        Ok((entry, config)) => Ok((entry, config, old)),
        Err(failure) => {
            let undone =
                blocking(move || before.put_back().map_err(|e| Failure::io("agent.json cannot be put back", &e)));
            if let Err(undo) = undone.await {
                tracing::error!(agent = %agent.facts.name, failure = %undo, "a failed setting could not be undone");
            }
            Err(failure)
        }
    }
}

/// An agent.json in which one key is to be rewritten.
struct Draft {
    config: AgentConfig,
    before: Before,
    /// The value before.
    old: Value,
}

/// An agent.json in which one key was rewritten.
struct Rewritten {
    /// The file, with its stamp.
    file: (AgentConfig, String),
    before: Before,
    /// The value before.
    old: Value,
}

/// Puts keys into agent.json as it stands on disk; nothing is written yet. The old value is that of the first.
async fn draft(ops: &Ops, agent: &Entry, pairs: Vec<(&str, Value)>) -> Result<Draft> {
    if let Some(problem) = agent.problem.as_ref().filter(|problem| problem.contains("last good")) {
        return Err(Failure::new(ErrorKind::InvalidConfig, problem.clone()).hint("mend agent.json by hand first"));
    }
    let (path, defaults) = (agent.facts.dir.join(FILE), ops.defaults());
    let pairs: Vec<(String, Value)> = pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    blocking(move || {
        let before =
            Before::of(path.clone()).map_err(|e| Failure::io(format_args!("cannot read {}", path.display()), &e))?;
        let mut map: Map<String, Value> = serde_json::from_str(&before.text)
            .map_err(|e| Failure::new(ErrorKind::InvalidConfig, format!("agent.json is no JSON object: {e}")))?;
        let mut before_it = pairs.into_iter().map(|(key, value)| map.insert(key, value).unwrap_or_default());
        let old = before_it.next().unwrap_or_default();
        before_it.for_each(drop);
        let config = AgentConfig::from_map(map, &defaults)
            .map_err(|e| Failure::new(ErrorKind::InvalidConfig, format!("agent.json {e}")))?;
        Ok(Draft { config, before, old })
    })
    .await
}

async fn write(agent: &Entry, Draft { config, before, old }: Draft) -> Result<Rewritten> {
    let dir = agent.facts.dir.clone();
    blocking(move || {
        let stamp = put_config(&dir, &config)
            .map_err(|e| Failure::io(format_args!("cannot write {}", dir.join(FILE).display()), &e))?;
        Ok(Rewritten { file: (config, stamp), before, old })
    })
    .await
}

/// Lists in agent.json what the agent has running, for whoever holds the lock on agents. A file that says so already is not
/// touched.
///
/// # Errors
/// `invalid_config`, `disk_full`, `storage_failed`.
pub async fn list_running(ops: &Ops, agent: &Entry, running: Vec<Value>) -> Result<()> {
    let (config, _) = in_force(ops, agent).await?;
    let listed = config.map().get("running_tasks").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if listed == running {
        return Ok(());
    }
    let rewritten = rewrite(ops, agent, "running_tasks", running.into()).await?;
    adopt(ops, agent.facts.dir.clone(), rewritten.file).await.map(drop)
}

/// Lists nothing any more in the agent.json of an agent that goes.
///
/// # Errors
/// As [`list_running`].
pub async fn list_none(ops: &Ops, agent: &Entry) -> Result<()> {
    rewrite(ops, agent, "running_tasks", Value::Array(Vec::new())).await.map(drop)
}

/// Rewrites one key of agent.json as it stands on disk.
async fn rewrite(ops: &Ops, agent: &Entry, key: &str, value: Value) -> Result<Rewritten> {
    write(agent, draft(ops, agent, vec![(key, value)]).await?).await
}

/// Sets keys that were looked at, all at once, for whoever holds the lock on agents; the old value is that of the first.
///
/// # Errors
/// As [`config`]; nothing is changed then.
pub(super) async fn set_keys(
    ops: &Ops,
    agent: &Entry,
    pairs: Vec<(&str, Value)>,
) -> Result<(Arc<Entry>, AgentConfig, Value)> {
    carry_out(ops, agent, draft(ops, agent, pairs).await?).await
}

/// Puts a configuration that is on disk into the catalog and the directory.
async fn adopt(
    ops: &Ops,
    dir: std::path::PathBuf,
    (config, stamp): (AgentConfig, String),
) -> Result<(Arc<Entry>, AgentConfig)> {
    let relative = dir.strip_prefix(&ops.home).unwrap_or(&dir).to_string_lossy().into_owned();
    ops.store.catalog.put_agent(row(&relative, &config, stamp.clone())).await?;
    Ok((ops.directory.put(entry(&ops.home, &relative, &config, stamp)), config))
}

/// Moves the directory and the row. Session files keep the name they were saved under.
async fn rename(ops: &Ops, agent: &Arc<Entry>, name: &str) -> Result<ConfigResult> {
    check_name(name)?;
    let old = agent.facts.name.clone();
    let (from, to) = (agent.facts.dir.clone(), ops.home.join(AGENTS).join(name));
    if name != old && (ops.directory.by_name(name).is_some() || to.symlink_metadata().is_ok()) {
        return Err(Failure::new(ErrorKind::AlreadyExists, format!("{name} is taken"))
            .hint("choose another name, or move the directory of that name elsewhere"));
    }
    if name == old {
        return get(ops, agent, Some("name")).await;
    }
    // Nothing may be written into the directory while it moves, by the agent or by an import or a tag.
    let _no_writers = ops.sessions_lock.write().await;
    let held = ops.registry.ask(agent.facts.id, Verb::Hold { goes: false }).await?;
    let draft = draft(ops, agent, vec![("name", name.into())]).await?;
    let (config, before) = (draft.config, draft.before);
    // The directory moves first: where that is all, a start knows by the directory's name what was wanted (`scan::agents`).
    let moved = {
        let (from, to) = (from.clone(), to.clone());
        blocking(move || {
            let failed = |e: &std::io::Error| Failure::io(format_args!("cannot rename to {}", to.display()), e);
            move_dir(&from, &to).map_err(|e| failed(&e))?;
            let stamp = put_config(&to, &config).map_err(|e| failed(&e))?;
            Ok((config, stamp))
        })
        .await
    };
    let adopted = match moved {
        Ok(file) => adopt(ops, to.clone(), file).await,
        Err(failure) => Err(failure),
    };
    let adopted = match adopted {
        Ok(adopted) => adopted,
        Err(failure) => {
            let undone = blocking(move || {
                let io = |e: std::io::Error| Failure::io("cannot undo a rename", &e);
                if !from.exists() {
                    move_dir(&to, &from).map_err(io)?;
                }
                before.put_back().map_err(io)
            });
            if let Err(undo) = undone.await {
                tracing::error!(agent = %old, failure = %undo, "a failed rename could not be undone");
            }
            return Err(failure);
        }
    };
    drop(held);
    tracing::info!(agent = %name, was = %old, "agent renamed");
    room::rename(ops, &adopted.0).await;
    let config = Map::from_iter([("name".to_owned(), Value::from(name))]);
    Ok(ConfigResult { agent: view::changed(ops, &adopted.0).await, config, old: Some(old.into()) })
}
