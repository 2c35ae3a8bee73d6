//! Deletes copies that were not read for longest, if all of them have more bytes than they may.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_catalog::AgentRow;
use chorus_runtime::run_blocking;
use uuid::Uuid;

use crate::SharedSessions;
use crate::read_times::KEEP_AFTER_READ;

/// The result of an eviction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EvictionReport {
    /// Bytes of all session files that are left.
    pub bytes: u64,
    /// Number of copies that were deleted.
    pub deleted: u64,
}

/// A session file.
#[derive(Debug)]
struct Copy {
    agent: Uuid,
    session_id: String,
    path: PathBuf,
    bytes: u64,
    /// Time since its last read.
    idle: Duration,
}

/// Lists the session files in the directories of agents. Blocks.
fn list_copies(home: &Path, agents: Vec<AgentRow>) -> Vec<Copy> {
    let mut copies = Vec::new();
    for agent in agents {
        let entries = fs::read_dir(home.join(&agent.dir).join("sessions")).into_iter().flatten().flatten();
        copies.extend(entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let session_id = name.strip_suffix(".json").filter(|name| !name.starts_with('.'))?.to_owned();
            let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let idle = metadata.accessed().ok()?.elapsed().unwrap_or_default();
            Some(Copy { agent: agent.id, session_id, path: entry.path(), bytes: metadata.len(), idle })
        }));
    }
    copies
}

impl SharedSessions {
    /// Deletes copies until the files of sessions have no more bytes than they may. Files whose messages are nowhere else
    /// stay, and those that were read a moment ago.
    ///
    /// # Errors
    /// `storage_failed`; what was deleted by then stays so.
    pub async fn evict(&self) -> Result<EvictionReport> {
        let agents = self.agents.list(false).await?;
        let home = self.home.clone();
        let mut copies = run_blocking(move || Ok(list_copies(&home, agents))).await?;
        let mut report = EvictionReport { bytes: copies.iter().map(|copy| copy.bytes).sum(), deleted: 0 };
        if report.bytes <= self.max_copied_bytes {
            return Ok(report);
        }
        for copy in &mut copies {
            copy.idle = self.reads.age(&copy.path).map_or(copy.idle, |read| read.min(copy.idle));
        }
        copies.retain(|copy| copy.idle >= KEEP_AFTER_READ);
        copies.sort_by_key(|copy| std::cmp::Reverse(copy.idle));
        for copy in copies {
            if report.bytes <= self.max_copied_bytes {
                break;
            }
            if self.delete_copy(&copy).await? {
                report.bytes -= copy.bytes;
                report.deleted += 1;
            }
        }
        Ok(report)
    }

    /// Deletes a copy, unless its messages are nowhere else or it was read since it was listed.
    async fn delete_copy(&self, copy: &Copy) -> Result<bool> {
        // Nobody changes the file in between.
        let _still = self.files.change_lock.lock().await;
        let row = self.sessions.list_named(Some(copy.agent), copy.session_id.clone()).await?.pop();
        // The row and its body are the truth, also about a file of an earlier state, or one that somebody has changed.
        if row.is_none_or(|row| row.body.is_none()) {
            return Ok(false);
        }
        if self.reads.age(&copy.path).is_some_and(|age| age < KEEP_AFTER_READ) {
            return Ok(false);
        }
        let path = copy.path.clone();
        run_blocking(move || {
            fs::remove_file(&path).map_err(|e| Error::io(format_args!("cannot delete {}", path.display()), &e))
        })
        .await?;
        self.reads.forget(&copy.path);
        Ok(true)
    }
}
