//! Reloads agent.json when it has changed on disk.

use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_base::error::Result;
use chorus_config::agent::{AGENT_FILE, AgentConfig};
use chorus_store::session_files::stamp;

use crate::agent::agent_index::AgentEntry;
use crate::ops::approvals::deny_outdated;
use crate::ops::{Ops, run_blocking};

/// Returns the agent with its current agent.json. If the file cannot be used, the entry reports the problem, and the
/// last good configuration stays in force.
pub async fn reload_if_changed(ops: &Ops, entry: Arc<AgentEntry>) -> Result<Arc<AgentEntry>> {
    if check_stamp(&entry).1 {
        return Ok(entry);
    }
    // While another operation creates, changes, moves or destroys an agent, its file must not be read; the next request
    // checks again.
    let Ok(_alone) = ops.agents_lock.try_lock() else { return Ok(entry) };
    match ops.agents.by_id(entry.settings.id) {
        Some(entry) => reload_locked(ops, entry).await,
        None => Ok(entry),
    }
}

/// Like [`reload_if_changed`]; the caller must hold the agents lock.
pub async fn reload_locked(ops: &Ops, entry: Arc<AgentEntry>) -> Result<Arc<AgentEntry>> {
    match check_stamp(&entry) {
        (_, true) => Ok(entry),
        (now, false) => reload(ops, entry, now).await,
    }
}

/// Returns the stamp of agent.json, and true if it is the known one. It costs one `stat`, cheap enough for every
/// request.
fn check_stamp(entry: &AgentEntry) -> (String, bool) {
    let path = entry.settings.dir.join(AGENT_FILE);
    let now = std::fs::metadata(&path).map_or_else(|e| e.kind().to_string(), |metadata| stamp(&metadata));
    let same = now == entry.config_stamp;
    (now, same)
}

/// Like [`reload_if_changed`], for many agents.
pub async fn reload_all(ops: &Ops, entries: Vec<Arc<AgentEntry>>) -> Result<Vec<Arc<AgentEntry>>> {
    let mut fresh = Vec::with_capacity(entries.len());
    for entry in entries {
        fresh.push(reload_if_changed(ops, entry).await?);
    }
    Ok(fresh)
}

async fn reload(ops: &Ops, entry: Arc<AgentEntry>, stamp: String) -> Result<Arc<AgentEntry>> {
    let path = entry.settings.dir.join(AGENT_FILE);
    let defaults = ops.defaults();
    let id = entry.settings.id;
    // If the previous permissions were unusable too, unusable ones are accepted.
    let lenient = entry.settings.profile.is_err();
    let config = run_blocking(move || {
        Ok(std::fs::read_to_string(&path)
            .map_err(|e| format!("cannot be read: {e}"))
            .and_then(|text| AgentConfig::parse(&text, &defaults))
            .and_then(|config| match &config.profile {
                Err(problem) if !lenient => Err(problem.clone()),
                _ => Ok(config),
            })
            .and_then(|config| if config.id == id { Ok(config) } else { Err("has another agent's `id`".to_owned()) }))
    })
    .await?;
    let name = entry.settings.name.clone();
    match config {
        Ok(config) => {
            let dir = entry.settings.dir.strip_prefix(&ops.home).unwrap_or(&entry.settings.dir);
            let mut row = super::agent_row(&dir.to_string_lossy(), &config, stamp.clone());
            // Only `agent config NAME name NEW` changes the name, because it also moves the directory.
            row.name.clone_from(&name);
            let problem = (config.name != name).then(|| {
                format!("agent.json says the name {:?}; rename with `chorusctl agent config {name} name`", config.name)
            });
            ops.store.catalog.agents.upsert(row).await?;
            let mut new = super::agent_entry(&ops.home, &dir.to_string_lossy(), &config, stamp);
            new.settings = Arc::new(AgentSettings { name, ..(*new.settings).clone() });
            new.config_problem = problem.or(new.config_problem);
            tracing::info!(agent = %new.settings.name, "agent.json was read again");
            let new = ops.agents.insert(new);
            super::discord_channel::sync_if_changed(ops, Some(&entry), &new);
            deny_outdated(ops, &entry).await;
            Ok(new)
        }
        Err(problem) => {
            tracing::warn!(agent = %name, problem, "agent.json cannot be used; the last good one stays in force");
            let problem = Some(format!("agent.json {problem}; the last good one stays in force"));
            Ok(ops.agents.insert(AgentEntry { config_stamp: stamp, config_problem: problem, ..(*entry).clone() }))
        }
    }
}
