//! Making the index anew: what the directories and session files say takes the place of what the catalog said.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use chorus_proto::methods::doctor::Rebuilt;
use futures_util::{StreamExt as _, TryStreamExt as _};

use super::{Ops, blocking, scan};
use crate::agent::directory::Entry;
use crate::config::agent::{AgentConfig, FILE};
use crate::failure::{Failure, Result};
use crate::store::catalog::{AgentRow, Listing, SessionRow, Truth};
use crate::store::session_files::{self, stamp};

/// Session files that are read at once.
const READERS: usize = 4;

/// Rebuilds the tables of agents and sessions. What happens meanwhile is in them, too.
///
/// # Errors
/// A directory or database that cannot be read or written; the tables are as they were then.
pub async fn rebuild(ops: &Ops) -> Result<Rebuilt> {
    let begun = Instant::now();
    // No agent comes or goes.
    let _alone = ops.agents_lock.lock().await;
    scan::agents(ops).await?;
    let mark = ops.store.catalog.mark().await?;
    let entries = ops.directory.all();
    let mut truth = Truth::default();
    for entry in &entries {
        truth.of.push(entry.facts.id);
        truth.agents.extend(agent(ops, entry).await?);
        truth.sessions.extend(sessions(ops, entry).await?);
    }
    // Lists show what has one place in the order of its rows. A session that the catalog knew keeps its place.
    truth.sessions.sort_by_key(|row| row.place);
    let mut rebuilt = Rebuilt {
        agents: entries.len() as u64,
        sessions: truth.sessions.len() as u64,
        corrupt: truth.sessions.iter().filter(|row| row.corrupt.is_some()).count() as u64,
        ..Rebuilt::default()
    };
    ops.store.catalog.rebuild(truth, mark).await?;
    for entry in &entries {
        // What was written since it was read has another stamp.
        scan::sessions(ops, &entry.facts).await?;
    }
    rebuilt.duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(agents = rebuilt.agents, sessions = rebuilt.sessions, took = ?begun.elapsed(), "index rebuilt");
    Ok(rebuilt)
}

/// The row of an agent; `None` where agent.json cannot be used and the last good one stays in force.
async fn agent(ops: &Ops, entry: &Arc<Entry>) -> Result<Option<AgentRow>> {
    let path = entry.facts.dir.join(FILE);
    let (defaults, facts) = (ops.defaults(), entry.facts.clone());
    let dir = facts.dir.strip_prefix(&ops.home).unwrap_or(&facts.dir).to_string_lossy().into_owned();
    blocking(move || {
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
        let stamp = std::fs::metadata(&path).map(|metadata| stamp(&metadata)).unwrap_or_default();
        let config = AgentConfig::parse(&text, &defaults).ok().filter(|config| config.id == facts.id);
        Ok(config.map(|config| AgentRow { name: facts.name.clone(), ..super::agent::row(&dir, &config, stamp) }))
    })
    .await
}

/// The rows of an agent's session files, oldest change first.
async fn sessions(ops: &Ops, entry: &Arc<Entry>) -> Result<Vec<SessionRow>> {
    let listing = Listing { agent: Some(entry.facts.id), limit: u64::MAX, ..Listing::default() };
    let (known, _) = ops.store.catalog.sessions(listing).await?;
    let mut known: HashMap<String, SessionRow> =
        known.into_iter().map(|row| (row.header.session_id.clone(), row)).collect();
    let dir = entry.facts.dir.join("sessions");
    let files = blocking(move || files(&dir)).await?;
    let now = ops.clock.now();
    let rows: Vec<Option<SessionRow>> = futures_util::stream::iter(files)
        .map(|(name, path)| {
            let (known, facts) = (known.remove(&name), entry.facts.clone());
            blocking(move || match session_files::read(&path) {
                Ok(found) => Ok(Some(scan::row(&facts, &name, found, known, now))),
                Err(failure) => {
                    tracing::warn!(agent = %facts.name, session = %name, %failure, "a session file cannot be read");
                    Ok(known)
                }
            })
        })
        .buffered(READERS)
        .try_collect()
        .await?;
    Ok(rows.into_iter().flatten().collect())
}

/// Names and paths of session files, oldest change first.
fn files(dir: &std::path::Path) -> Result<Vec<(String, PathBuf)>> {
    let failed = |e: std::io::Error| Failure::io(format_args!("cannot read {}", dir.display()), &e);
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(session) = name.strip_suffix(".json").filter(|name| !name.starts_with('.')) else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() {
            files.push((metadata.modified().ok(), session.to_owned(), entry.path()));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, name, path)| (name, path)).collect())
}
