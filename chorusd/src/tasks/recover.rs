//! What a daemon that ended left behind.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use chorus_proto::methods::tasks::TaskStatus;

use super::Tasks;
use super::notice::{Ended, LOOKED_AT};
use super::process::Noted;
use super::run::GRACE;
use crate::failure::Result;
use crate::store::catalog::TaskRow;

/// What a start has found.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Tasks that ran when the daemon ended; they are lost.
    lost: Vec<TaskRow>,
    /// All whose agents have not heard of the end.
    untold: Vec<TaskRow>,
}

impl Tasks {
    /// Takes up what the table says. What ran when the daemon ended is lost; what of it still runs, and is certainly what
    /// was started, is ended in the background.
    ///
    /// # Errors
    /// A database that cannot be used.
    pub async fn recover(&self) -> Result<Recovered> {
        let mut found = self.shared.store.catalog.tasks_found().await?;
        let mut lost = Vec::new();
        for row in found.untold.iter_mut().filter(|row| row.status == TaskStatus::Running) {
            let noted = Noted { pid: row.pid, started: row.pid_started, boot: row.boot.clone() };
            if noted.runs() {
                tracing::warn!(agent = %row.agent_name, task = %row.id, pid = row.pid, "a task was left over; it is ended");
                tokio::spawn(async move { noted.end(GRACE).await });
            }
            (row.status, row.ended_at) = (TaskStatus::Lost, Some(self.shared.now()));
            self.shared.store.catalog.end_task(row.clone()).await?;
            *found.ended.entry(row.agent).or_default() += 1;
            lost.push(row.clone());
        }
        self.shared.slots.recover(found.last, found.ended);
        Ok(Recovered { lost, untold: found.untold })
    }

    /// Tells of what was found, once there is somebody to tell.
    pub async fn tell_of(&self, recovered: Recovered) {
        for row in &recovered.lost {
            self.shared.announce(row);
        }
        let mut ended = Vec::with_capacity(recovered.untold.len());
        for row in recovered.untold {
            let Some((_, dir)) = self.shared.outside().and_then(|outside| outside.place_of(row.agent)) else {
                // Its agent is gone, and hears nothing any more.
                if let Err(failure) = self.shared.store.catalog.told_of_task(row.id).await {
                    tracing::warn!(%failure, "a task of an agent that is gone cannot be put aside");
                }
                continue;
            };
            let path = dir.join(&row.log_path);
            let read = tokio::task::spawn_blocking(move || end_of(&path)).await;
            let (output, problem) = match read.map_err(io::Error::other).and_then(|read| read) {
                Ok(output) => (output, None),
                Err(e) => (Vec::new(), Some(format!("its log cannot be read: {e}"))),
            };
            ended.push(Ended { row, output, problem });
        }
        self.tell(ended).await;
    }
}

/// The last bytes of a file. Blocks.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOOKED_AT as u64 + 1)))?;
    let mut end = Vec::new();
    file.take(LOOKED_AT as u64 + 1).read_to_end(&mut end)?;
    Ok(end)
}
