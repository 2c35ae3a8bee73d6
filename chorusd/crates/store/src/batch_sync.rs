//! Thread that makes many session files durable at once, with two syncs of the file system for a whole batch instead of
//! two syncs per file.

use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread;

use chorus_base::error::Result;
use chorus_base::private_fs::map_sync_error;
use rustix::fs::{fstatfs, syncfs};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::session_files::{StagedFile, WrittenFile};
use super::thread_pool::lower_priority;

/// Smaller batches are synced file by file, because syncing a file system also writes the data of other programs.
const MIN_BATCH_FILES: usize = 16;

/// Limit of files in a batch; later ones wait for the next batch.
const MAX_BATCH_FILES: usize = 256;

/// Limit of queued files; the caller persists further ones itself.
const MAX_QUEUED_FILES: usize = 1024;

/// A file, and the callback for its outcome.
type QueuedFile = (StagedFile, Box<dyn FnOnce(Result<WrittenFile>) + Send>);

/// Limit of durable files whose catalog rows are being inserted, so that a burst of files does not delay the appends of
/// others.
const MAX_CONCURRENT_ROW_INSERTS: usize = 256;

/// Handle of the thread, which starts with the first file.
#[derive(Debug)]
pub struct BatchSync {
    queue: OnceLock<Option<SyncSender<QueuedFile>>>,
    rows: Semaphore,
}

impl Default for BatchSync {
    fn default() -> Self {
        Self { queue: OnceLock::new(), rows: Semaphore::new(MAX_CONCURRENT_ROW_INSERTS) }
    }
}

impl BatchSync {
    /// Waits for a permit to insert a file's catalog row; hold it until the row is inserted.
    pub async fn acquire_row_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.rows.acquire().await.ok()
    }

    /// Makes a file durable and renames it to its final path, together with the other queued files. Calls `placed` once
    /// it is durable, or with the error, in which case nothing is left behind. Blocks if the queue is full, because the
    /// caller then persists the file itself.
    pub fn persist(&self, filled: StagedFile, placed: impl FnOnce(Result<WrittenFile>) + Send + 'static) {
        let waiting: QueuedFile = (filled, Box::new(placed));
        let queued = match self.queue.get_or_init(start_thread) {
            Some(queue) => queue.try_send(waiting).map_err(|refused| match refused {
                TrySendError::Full(waiting) | TrySendError::Disconnected(waiting) => waiting,
            }),
            None => Err(waiting),
        };
        if let Err((filled, placed)) = queued {
            placed(filled.persist());
        }
    }
}

fn start_thread() -> Option<SyncSender<QueuedFile>> {
    let (queue, files) = mpsc::sync_channel(MAX_QUEUED_FILES);
    let spawned = thread::Builder::new().name("files".into()).spawn(move || run_batches(&files));
    spawned.inspect_err(|e| tracing::warn!("files are placed one by one: no thread for them: {e}")).ok().map(|_| queue)
}

fn run_batches(files: &Receiver<QueuedFile>) {
    lower_priority();
    while let Ok(first) = files.recv() {
        let group: Vec<_> = std::iter::once(first).chain(files.try_iter()).take(MAX_BATCH_FILES).collect();
        if group.len() >= MIN_BATCH_FILES && syncfs_covers(group[0].0.file()) {
            persist_batch(group);
        } else {
            for (filled, reply) in group {
                reply(filled.persist());
            }
        }
    }
}

/// Syncs the files, renames all of them, then syncs their directories.
fn persist_batch(group: Vec<QueuedFile>) {
    let Ok(any) = group[0].0.file().try_clone() else {
        return group.into_iter().for_each(|(filled, reply)| reply(filled.persist()));
    };
    let sync = || map_sync_error(syncfs(&any).map_err(Into::into));
    let mut result = sync();
    let mut placed = Vec::with_capacity(group.len());
    for (filled, reply) in group {
        let one = match &result {
            Ok(()) => filled.rename_into_place(),
            Err(e) => Err(filled.to_error(e)),
        };
        placed.push((one, reply));
    }
    if result.is_ok() {
        result = sync();
    }
    for (one, reply) in placed {
        let one = match (&result, one) {
            (Err(e), Ok(written)) => Err(written.to_error(e)),
            (_, one) => one,
        };
        reply(one);
    }
}

/// Returns whether a sync of the whole file system does for each file what a sync of the file does, including error
/// reports. True on kernels from 5.8 (see syncfs(2)) with one of the common file systems; others do not report errors
/// (FUSE), or may not.
pub fn syncfs_covers(file: &std::fs::File) -> bool {
    /// Magic numbers from linux/magic.h: ext2 to ext4, XFS, Btrfs, F2FS.
    const KNOWN_FILE_SYSTEMS: [u64; 4] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010];
    static KERNEL_REPORTS_ERRORS: OnceLock<bool> = OnceLock::new();
    let known = |fd: &std::fs::File| {
        fstatfs(fd.as_fd())
            .is_ok_and(|stat| u64::try_from(stat.f_type).is_ok_and(|kind| KNOWN_FILE_SYSTEMS.contains(&kind)))
    };
    *KERNEL_REPORTS_ERRORS
        .get_or_init(|| kernel_reports_syncfs_errors(&rustix::system::uname().release().to_string_lossy()))
        && known(file)
}

fn kernel_reports_syncfs_errors(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_that_tell_errors() {
        for release in ["5.8", "5.10.0-28-amd64", "6.1.0", "12.0"] {
            assert!(kernel_reports_syncfs_errors(release), "{release}");
        }
        for release in ["5.7.19", "4.19.0-1", "", "linux"] {
            assert!(!kernel_reports_syncfs_errors(release), "{release}");
        }
    }
}
