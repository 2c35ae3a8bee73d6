//! Recovers the tasks of an earlier daemon at the start.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use chorus_base::error::Result;
use chorus_catalog::TaskRow;
use chorus_proto::methods::tasks::TaskStatus;

use super::Tasks;
use super::notice::{EXAMINED_OUTPUT_LEN, EndedTask};
use super::process_identity::ProcessIdentity;
use super::run::TERMINATE_GRACE;

/// The tasks that a start has found.
#[derive(Debug, Default)]
pub struct RecoveredTasks {
    /// Tasks that were running when the daemon ended; their end is unknown.
    lost: Vec<TaskRow>,
    /// All tasks whose agents were not notified of the end.
    unreported: Vec<TaskRow>,
}

impl Tasks {
    /// Loads the table of tasks. Marks tasks that were running as lost, and ends in the background those processes that
    /// are certainly still the same.
    pub async fn recover(&self) -> Result<RecoveredTasks> {
        let mut found = self.shared.store.catalog.tasks.list_at_start().await?;
        let recovered = self.record_lost(found.unreported).await?;
        for row in &recovered.lost {
            *found.ended.entry(row.agent).or_default() += 1;
        }
        self.shared.slots.restore(found.last, found.ended);
        Ok(recovered)
    }

    /// Marks those tasks as lost that were running, as [`Tasks::recover`] does, and counts them. None of them runs in this process.
    pub async fn mark_lost(&self, unreported: Vec<TaskRow>) -> Result<RecoveredTasks> {
        let recovered = self.record_lost(unreported).await?;
        recovered.lost.iter().for_each(|row| self.shared.slots.count_ended(row.agent, 1));
        Ok(recovered)
    }

    async fn record_lost(&self, mut unreported: Vec<TaskRow>) -> Result<RecoveredTasks> {
        let mut lost = Vec::new();
        for row in unreported.iter_mut().filter(|row| row.status == TaskStatus::Running) {
            let noted = ProcessIdentity { pid: row.pid, start_time: row.pid_started, boot_id: row.boot.clone() };
            if noted.is_running() {
                tracing::warn!(agent = %row.agent_name, task = %row.id, pid = row.pid, "stopping a leftover task");
                chorus_runtime::spawn(async move { noted.terminate(TERMINATE_GRACE).await });
            }
            (row.status, row.ended_at) = (TaskStatus::Lost, Some(self.shared.now()));
            self.shared.store.catalog.tasks.update_end(row.clone()).await?;
            lost.push(row.clone());
        }
        Ok(RecoveredTasks { lost, unreported })
    }

    /// Notifies observers and agents of the recovered tasks, once there are receivers.
    pub async fn notify_recovered(&self, recovered: RecoveredTasks) {
        for row in &recovered.lost {
            self.shared.publish_end(row);
        }
        let mut ended = Vec::with_capacity(recovered.unreported.len());
        for row in recovered.unreported {
            let Some((_, dir)) = self.shared.host().and_then(|outside| outside.name_and_dir(row.agent)) else {
                // The agent does not exist any more: mark the task as notified.
                if let Err(failure) = self.shared.store.catalog.tasks.mark_reported(row.id).await {
                    tracing::warn!(%failure, "cannot archive a task of a deleted agent");
                }
                continue;
            };
            let path = dir.join(&row.log_path);
            let read = chorus_runtime::spawn_blocking(move || read_tail(&path)).await;
            let (output, problem) = match read.map_err(io::Error::other).and_then(|read| read) {
                Ok(output) => (output, None),
                Err(e) => (Vec::new(), Some(format!("cannot read its log: {e}"))),
            };
            ended.push(EndedTask { row, output, problem });
        }
        self.notify_agents(ended).await;
    }
}

/// Reads the last bytes of a file. Blocks.
fn read_tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(EXAMINED_OUTPUT_LEN as u64 + 1)))?;
    let mut end = Vec::new();
    file.take(EXAMINED_OUTPUT_LEN as u64 + 1).read_to_end(&mut end)?;
    Ok(end)
}
