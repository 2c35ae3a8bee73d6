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

/// A request that began before the deletion may still make a copy within this time.
const MAX_REQUEST_TIME: SignedDuration = SignedDuration::from_mins(15);

/// Returns the session files in a directory whose sessions are among `deleted`. Blocks.
fn find_files(dir: &Path, deleted: &HashSet<Uuid>) -> Vec<(Uuid, PathBuf)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = entries.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let id_of = |path: &Path| session_files::read_header(path).ok().flatten().map(|header| header.id);
    let found = files.filter_map(|path| Some((id_of(&path).filter(|id| deleted.contains(id))?, path)));
    found.collect()
}

impl SharedSessions {
    /// Deletes the files of sessions that were deleted, by whatever node. Returns their number. A session that has a row is there again, and a
    /// file of which no deletion is recorded stays.
    ///
    /// # Errors
    /// `storage_failed`; what was deleted by then stays so, and the rest is tried again.
    pub async fn delete_leftovers(&self) -> Result<u64> {
        let mut seen = self.deletions_seen.lock().await;
        let now = Timestamp::now();
        let mut by_agent: HashMap<Uuid, HashSet<Uuid>> = HashMap::new();
        let recorded = self.sessions.deleted_since(Timestamp::MIN).await?;
        for deleted in recorded.iter().filter(|deleted| !seen.contains(&deleted.id)) {
            by_agent.entry(deleted.agent).or_default().insert(deleted.id);
        }
        let mut count = 0;
        for agent in self.agents.list(false).await? {
            let Some(ids) = by_agent.remove(&agent.id) else { continue };
            let dir = self.home.join(&agent.dir).join("sessions");
            for (id, path) in run_blocking(move || Ok(find_files(&dir, &ids))).await? {
                // Nobody changes the file in between.
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
        let is_over = |at: Timestamp| now.duration_since(at) > MAX_REQUEST_TIME;
        *seen = recorded.into_iter().filter(|deleted| is_over(deleted.deleted_at)).map(|deleted| deleted.id).collect();
        Ok(count)
    }
}
