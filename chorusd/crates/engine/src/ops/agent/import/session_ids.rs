//! Session ids in an imported agent. A session keeps its id unless that is taken here; references to parents are
//! adjusted accordingly.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::SessionTable;
use chorus_runtime::run_blocking;
use chorus_store::session_files;
use uuid::Uuid;

use super::contents::ImportPlan;

/// A session file with the ids in its header.
struct SessionIds {
    path: PathBuf,
    id: Uuid,
    agent: Uuid,
    parent: Option<Uuid>,
}

/// Changes the headers of those files in `sessions` that need another id, parent or agent. Returns how many sessions
/// got a new id. A file that cannot be read stays unchanged.
pub(super) async fn resolve_conflicts(
    table: &Arc<dyn SessionTable>,
    sessions: &Path,
    plan: &ImportPlan,
) -> Result<u64> {
    let dir = sessions.to_owned();
    let found = run_blocking(move || read_session_ids(&dir)).await?;
    let (mut new, mut seen) = (HashMap::new(), HashSet::new());
    for session in &found {
        let taken = !seen.insert(session.id) || table.get(session.id).await?.is_some();
        if taken {
            new.insert(session.path.clone(), Uuid::new_v4());
        }
    }
    // If an id occurs twice in one archive, other sessions refer to the first one.
    let meant: HashMap<Uuid, Uuid> =
        found.iter().rev().filter_map(|session| Some((session.id, *new.get(&session.path)?))).collect();
    let originals: HashSet<Uuid> =
        found.iter().filter(|session| !new.contains_key(&session.path)).map(|session| session.id).collect();
    let (was, agent, count) = (plan.archived_id, plan.config.id, new.len() as u64);
    run_blocking(move || {
        for session in found {
            let id = new.get(&session.path).copied();
            let parent =
                session.parent.filter(|parent| !originals.contains(parent)).and_then(|parent| meant.get(&parent));
            let moved = session.agent == was && was != agent;
            if id.is_none() && parent.is_none() && !moved {
                continue;
            }
            session_files::update_header(&session.path, |header| {
                header.id = id.unwrap_or(header.id);
                header.parent_id = parent.copied().or(header.parent_id);
                header.agent_id = if moved { agent } else { header.agent_id };
            })?;
        }
        Ok(count)
    })
    .await
}

/// Reads the headers of all files, sorted by name; leaves out unreadable files. Blocks.
fn read_session_ids(dir: &Path) -> Result<Vec<SessionIds>> {
    let failed = |e: std::io::Error| Error::io("cannot read the imported data", &e);
    let entries = std::fs::read_dir(dir).map_err(failed)?.collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
    let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    let mut sessions = Vec::with_capacity(paths.len());
    for path in paths {
        if let Ok(file) = session_files::read(&path)?.file {
            let header = file.header;
            sessions.push(SessionIds { path, id: header.id, agent: header.agent_id, parent: header.parent_id });
        }
    }
    Ok(sessions)
}
