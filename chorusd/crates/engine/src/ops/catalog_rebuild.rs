//! Rebuilds the catalog's tables of agents and sessions from their directories and session files.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use chorus_base::error::{Error, Result};
use chorus_catalog::{AgentRow, SessionQuery, SessionRow};
use chorus_config::agent::{AGENT_FILE, AgentConfig};
use chorus_proto::methods::doctor::Rebuilt;
use chorus_runtime::run_blocking;
use chorus_store::DirectoryScan;
use chorus_store::session_files;
use chorus_store::session_files::stamp;
use chorus_store::session_form::{SessionForm, parse_file_name};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, TryStreamExt as _};

use super::session::import::OnProgress;
use super::{Ops, catalog_sync};
use crate::agent::agent_index::AgentEntry;

/// The limit on session files that are read concurrently.
const MAX_CONCURRENT_READS: usize = 4;

/// Rebuilds the tables of agents and sessions. They also contain what changes meanwhile. If it fails, the tables stay
/// as they were. Reports the number of session files that were read.
pub(super) fn rebuild_catalog<'a>(ops: &'a Ops, mut progress: OnProgress) -> BoxFuture<'a, Result<Rebuilt>> {
    Box::pin(async move {
        let begun = Instant::now();
        let files = ops.store.require_sqlite("a rebuild of the catalog")?;
        // Keeps agents from being created, renamed or destroyed.
        let _alone = ops.agent_resolver.lock.lock().await;
        ops.catalog_sync.sync_agents().await?;
        let mark = files.newest_session_row().await?;
        let entries = ops.agents.all();
        let mut truth = DirectoryScan::default();
        let (mut files_of_agents, mut total) = (Vec::new(), 0);
        for entry in &entries {
            let dir = entry.settings.dir.join("sessions");
            let files = run_blocking(move || list_session_files(&dir)).await?;
            total += files.len() as u64;
            files_of_agents.push(files);
        }
        let mut read = 0;
        let mut report = || {
            progress(read, total);
            read += 1;
        };
        for (entry, files) in entries.iter().zip(files_of_agents) {
            truth.agent_ids.push(entry.settings.id);
            truth.agents.extend(agent_row(ops, entry).await?);
            truth.sessions.extend(session_rows(ops, entry, files, &mut report).await?);
        }
        // Lists show sessions of equal position in the order of their rows. A session that the catalog knew keeps its
        // position.
        truth.sessions.sort_by_key(|row| row.place);
        let mut rebuilt = Rebuilt {
            agents: entries.len() as u64,
            sessions: truth.sessions.len() as u64,
            corrupt: truth.sessions.iter().filter(|row| row.corrupt.is_some()).count() as u64,
            ..Rebuilt::default()
        };
        files.rebuild_catalog(truth, mark).await?;
        for entry in &entries {
            // Files that were written since they were read have another stamp, and are read again here.
            ops.catalog_sync.sync_sessions(&entry.settings).await?;
        }
        rebuilt.duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(agents = rebuilt.agents, sessions = rebuilt.sessions, took = ?begun.elapsed(), "index rebuilt");
        Ok(rebuilt)
    })
}

/// Returns the row of an agent; `None` if its agent.json cannot be used, so that the last good configuration stays in
/// force.
async fn agent_row(ops: &Ops, entry: &Arc<AgentEntry>) -> Result<Option<AgentRow>> {
    let path = entry.settings.dir.join(AGENT_FILE);
    let (defaults, settings) = (ops.defaults(), entry.settings.clone());
    let dir = settings.dir.strip_prefix(&ops.home).unwrap_or(&settings.dir).to_string_lossy().into_owned();
    run_blocking(move || {
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
        let stamp = std::fs::metadata(&path).map(|metadata| stamp(&metadata)).unwrap_or_default();
        let config = AgentConfig::parse(&text, &defaults).ok().filter(|config| config.id == settings.id);
        Ok(config
            .map(|config| AgentRow { name: settings.name.clone(), ..super::agent::agent_row(&dir, &config, stamp) }))
    })
    .await
}

/// Returns the rows of an agent's session files, in their order. Calls `report` for each file that was read.
async fn session_rows(
    ops: &Ops,
    entry: &Arc<AgentEntry>,
    files: Vec<(String, PathBuf)>,
    report: &mut (dyn FnMut() + Send),
) -> Result<Vec<SessionRow>> {
    let listing = SessionQuery { agent: Some(entry.settings.id), limit: u64::MAX, ..SessionQuery::default() };
    let (known, _) = ops.store.catalog.sessions.list(listing).await?;
    let mut known: HashMap<String, SessionRow> =
        known.into_iter().map(|row| (row.header.session_id.clone(), row)).collect();
    let now = ops.clock.now();
    let rows: Vec<Option<SessionRow>> = futures_util::stream::iter(files)
        .map(|(name, path)| {
            let (known, settings) = (known.remove(&name), entry.settings.clone());
            run_blocking(move || match session_files::read(&path) {
                Ok(found) => Ok(Some(catalog_sync::session_row(&settings, &name, found, known, now))),
                Err(failure) => {
                    tracing::warn!(agent = %settings.name, session = %name, %failure, "cannot read a session file");
                    Ok(known)
                }
            })
        })
        .buffered(MAX_CONCURRENT_READS)
        .inspect(|_| report())
        .try_collect()
        .await?;
    Ok(rows.into_iter().flatten().collect())
}

/// Lists names and paths of session files, ordered by modification time.
fn list_session_files(dir: &std::path::Path) -> Result<Vec<(String, PathBuf)>> {
    let failed = |e: std::io::Error| Error::io(format_args!("cannot read {}", dir.display()), &e);
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((session, form)) = parse_file_name(&name) else { continue };
        // A plain file counts more than a compressed one.
        if form == SessionForm::Compressed && dir.join(format!("{session}.json")).symlink_metadata().is_ok() {
            continue;
        }
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() {
            files.push((metadata.modified().ok(), session.to_owned(), entry.path()));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, name, path)| (name, path)).collect())
}
