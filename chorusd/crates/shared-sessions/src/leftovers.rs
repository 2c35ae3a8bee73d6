//! Deletes the copies of sessions that another node has deleted.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_runtime::run_blocking;
use chorus_store::session_files;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::SharedSessions;

/// Deletions of this last time are looked at again each time: a request that began before one may have made a copy since, and the clock of the
/// node that recorded it may be slow.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(1);

/// Returns the session files in a directory whose sessions are among `deleted`. Opens only those whose names are not in `known`, so that the
/// times at which the others were read stay. Blocks.
fn find_files(dir: &Path, known: &HashSet<String>, deleted: &HashSet<Uuid>) -> Vec<(Uuid, PathBuf)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_unknown = |path: &Path| path.file_stem().is_some_and(|name| !known.contains(&*name.to_string_lossy()));
    let files =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "json") && is_unknown(path));
    let id_of = |path: &Path| session_files::read_header(path).ok().flatten().map(|header| header.id);
    let found = files.filter_map(|path| Some((id_of(&path).filter(|id| deleted.contains(id))?, path)));
    found.collect()
}

impl SharedSessions {
    /// Deletes the files of sessions that were deleted, by whatever node. Returns their number. A session that has a row is there again, and a
    /// file of which no deletion is recorded stays. The first call looks at all recorded deletions, the next ones at those since then.
    ///
    /// # Errors
    /// `storage_failed`; what was deleted by then stays so, and the rest is tried again.
    pub async fn delete_leftovers(&self) -> Result<u64> {
        let mut seen_until = self.deletions_seen_until.lock().await;
        let now = self.clock.now();
        let since = seen_until.map_or(Timestamp::MIN, |at| at.saturating_sub(LOOK_BACK).unwrap_or(at));
        let mut by_agent: HashMap<Uuid, HashSet<Uuid>> = HashMap::new();
        for deleted in self.sessions.deleted_since(since).await? {
            by_agent.entry(deleted.agent).or_default().insert(deleted.id);
        }
        let mut count = 0;
        for agent in self.agents.list(false).await? {
            let Some(ids) = by_agent.remove(&agent.id) else { continue };
            let dir = self.home.join(&agent.dir).join("sessions");
            let stamps = self.sessions.file_stamps(agent.id).await?;
            let known = stamps.into_iter().map(|(name, _)| name).collect();
            for (id, path) in run_blocking(move || Ok(find_files(&dir, &known, &ids))).await? {
                // Nobody changes the file in between, or puts it back.
                let _still = self.files.change_lock.lock().await;
                if !self.sessions.get_all(vec![id]).await?.is_empty() {
                    continue;
                }
                self.reads.forget(&path);
                run_blocking(move || {
                    fs::remove_file(&path).map_err(|e| Error::io(format_args!("cannot delete {}", path.display()), &e))
                })
                .await?;
                count += 1;
            }
        }
        *seen_until = Some(now);
        Ok(count)
    }
}
