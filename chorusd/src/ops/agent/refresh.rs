//! Reading agent.json again when it changed on disk.

use std::sync::Arc;

use crate::agent::Facts;
use crate::agent::directory::Entry;
use crate::config::agent::{AgentConfig, FILE};
use crate::failure::Result;
use crate::ops::approvals::close_outdated;
use crate::ops::{Ops, blocking};
use crate::store::session_files::stamp;

/// The agent as its agent.json has it now. A file that cannot be used is reported, and the last good one stays in
/// force.
///
/// # Errors
/// A database that cannot be written.
pub async fn refresh(ops: &Ops, entry: Arc<Entry>) -> Result<Arc<Entry>> {
    if unchanged(&entry).1 {
        return Ok(entry);
    }
    // While an agent is made, changed, moved or taken away, its file is not to be read: the next request looks again.
    let Ok(_alone) = ops.agents_lock.try_lock() else { return Ok(entry) };
    match ops.directory.by_id(entry.facts.id) {
        Some(entry) => refresh_alone(ops, entry).await,
        None => Ok(entry),
    }
}

/// As [`refresh`], for whoever holds the lock on agents.
///
/// # Errors
/// As [`refresh`].
pub async fn refresh_alone(ops: &Ops, entry: Arc<Entry>) -> Result<Arc<Entry>> {
    match unchanged(&entry) {
        (_, true) => Ok(entry),
        (now, false) => reread(ops, entry, now).await,
    }
}

/// The stamp of agent.json, and whether it is the known one. One stat: cheap enough to stand in the way of every
/// request.
fn unchanged(entry: &Entry) -> (String, bool) {
    let path = entry.facts.dir.join(FILE);
    let now = std::fs::metadata(&path).map_or_else(|e| e.kind().to_string(), |metadata| stamp(&metadata));
    let same = now == entry.stamp;
    (now, same)
}

/// As [`refresh`], for many.
///
/// # Errors
/// As [`refresh`].
pub async fn refresh_all(ops: &Ops, entries: Vec<Arc<Entry>>) -> Result<Vec<Arc<Entry>>> {
    let mut fresh = Vec::with_capacity(entries.len());
    for entry in entries {
        fresh.push(refresh(ops, entry).await?);
    }
    Ok(fresh)
}

async fn reread(ops: &Ops, entry: Arc<Entry>, stamp: String) -> Result<Arc<Entry>> {
    let path = entry.facts.dir.join(FILE);
    let defaults = ops.defaults();
    let id = entry.facts.id;
    // Where nothing better was there before, an agent without usable permissions is taken as it is.
    let lenient = entry.facts.profile.is_err();
    let config = blocking(move || {
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
    let name = entry.facts.name.clone();
    match config {
        Ok(config) => {
            let dir = entry.facts.dir.strip_prefix(&ops.home).unwrap_or(&entry.facts.dir);
            let mut row = super::row(&dir.to_string_lossy(), &config, stamp.clone());
            // A name is changed by `agent config NAME name NEW`, which moves the directory too.
            row.name.clone_from(&name);
            let problem = (config.name != name).then(|| {
                format!("agent.json says the name {:?}; rename with `chorusctl agent config {name} name`", config.name)
            });
            ops.store.catalog.put_agent(row).await?;
            let mut new = super::entry(&ops.home, &dir.to_string_lossy(), &config, stamp);
            new.facts = Arc::new(Facts { name, ..(*new.facts).clone() });
            new.problem = problem.or(new.problem);
            tracing::info!(agent = %new.facts.name, "agent.json was read again");
            let new = ops.directory.put(new);
            super::room::follow(ops, Some(&entry), &new);
            close_outdated(ops, &entry).await;
            Ok(new)
        }
        Err(problem) => {
            tracing::warn!(agent = %name, problem, "agent.json cannot be used; the last good one stays in force");
            let problem = Some(format!("agent.json {problem}; the last good one stays in force"));
            Ok(ops.directory.put(Entry { stamp, problem, ..(*entry).clone() }))
        }
    }
}
