//! Thread that makes many session files durable at once, with a sync of the file system for a whole batch instead of two
//! syncs per file. The sync that makes the contents of a batch durable does the same for the names of the batch before.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread;

use chorus_base::error::Result;
use chorus_base::private_fs::map_sync_error;
use rustix::fs::{fstatfs, syncfs};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::background_pool::lower_priority;
use super::session_files::{StagedFile, WrittenFile};

/// Smaller batches are synced file by file, because syncing a file system also writes the data of other programs.
const MIN_BATCH_FILES: usize = 16;

/// Limit of files in a batch; later ones wait for the next batch.
const MAX_BATCH_FILES: usize = 256;

/// Limit of queued files; the caller persists further ones itself.
const MAX_QUEUED_FILES: usize = 1024;

/// Receives the outcome of a file.
type Callback = Box<dyn FnOnce(Result<WrittenFile>) + Send>;

/// A file that waits to become durable.
type QueuedFile = (StagedFile, Callback);

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
    spawned.inspect_err(|e| tracing::warn!("syncing files one by one: cannot start a thread: {e}")).ok().map(|_| queue)
}

/// Persists the queued files until the queue is closed. While renamed files wait for their sync, it waits for no others.
fn run_batches(files: &Receiver<QueuedFile>) {
    lower_priority();
    let (mut staged, mut renamed) = (Vec::new(), RenamedFiles::default());
    loop {
        if staged.is_empty() && renamed.is_empty() {
            let Ok(first) = files.recv() else { return };
            staged.push(first);
        }
        staged.extend(files.try_iter().take(MAX_BATCH_FILES - staged.len()));
        if staged.len() >= MIN_BATCH_FILES && syncfs_covers(staged[0].0.file()) {
            renamed = renamed.sync_and_rename(std::mem::take(&mut staged));
        } else if !renamed.is_empty() {
            renamed = renamed.sync_and_rename(Vec::new());
        } else {
            staged.drain(..).for_each(persist_alone);
        }
    }
}

/// Files that have their final names, which are not synced yet.
#[derive(Default)]
struct RenamedFiles {
    /// A file that has been open since the first of consecutive batches: a sync through it reports every error since.
    open_file: Option<File>,
    outcomes: Vec<(Result<WrittenFile>, Callback)>,
}

impl RenamedFiles {
    fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
    }

    /// Syncs the file system once, for the names of these files and for the contents of the `staged` ones; then reports
    /// these, and renames the others and returns them.
    fn sync_and_rename(self, staged: Vec<QueuedFile>) -> Self {
        let first = staged.first().map(|(file, _)| file);
        let Some(open_file) = self.open_file.or_else(|| first?.file().try_clone().ok()) else {
            staged.into_iter().for_each(persist_alone);
            return Self::default();
        };
        let synced = map_sync_error(syncfs(&open_file).map_err(Into::into));
        for (renamed, report) in self.outcomes {
            report(match (renamed, &synced) {
                (Ok(file), Err(e)) => Err(file.to_error(e)),
                (renamed, _) => renamed,
            });
        }
        let mut outcomes = Vec::with_capacity(staged.len());
        for (file, report) in staged {
            match &synced {
                Ok(()) => outcomes.push((file.rename_into_place(), report)),
                Err(e) => report(Err(file.to_error(e))),
            }
        }
        Self { open_file: Some(open_file).filter(|_| !outcomes.is_empty()), outcomes }
    }
}

fn persist_alone((file, report): QueuedFile) {
    report(file.persist());
}

/// Returns whether a sync of the whole file system does for each file what a sync of the file does, including error
/// reports. True on kernels from 5.8 (see syncfs(2)) with one of the common file systems; others do not report errors
/// (FUSE), or may not.
pub fn syncfs_covers(file: &File) -> bool {
    /// Magic numbers from linux/magic.h: ext2 to ext4, XFS, Btrfs, F2FS.
    const KNOWN_FILE_SYSTEMS: [u64; 4] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010];
    static KERNEL_REPORTS_ERRORS: OnceLock<bool> = OnceLock::new();
    let known = |fd: &File| {
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
    use std::io::Write as _;
    use std::path::Path;

    use super::*;
    use crate::session_files::stage_file;

    /// Stages a file; its outcome goes to `outcomes`.
    fn stage(target: &Path, outcomes: &SyncSender<Result<WrittenFile>>) -> QueuedFile {
        let staged = stage_file(target, |out| out.write_all(b"{}").map(|()| String::new())).unwrap();
        let outcomes = outcomes.clone();
        (staged, Box::new(move |outcome| outcomes.send(outcome).unwrap()))
    }

    #[test]
    fn a_sync_completes_the_batch_before_and_renames_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let ([first, second], (reply, outcomes)) =
            (["first", "second"].map(|name| dir.path().join(name)), mpsc::sync_channel(4));
        let renamed = RenamedFiles::default().sync_and_rename(vec![stage(&first, &reply)]);
        assert!(first.exists() && outcomes.try_recv().is_err(), "its name is not durable yet");
        let renamed = renamed.sync_and_rename(vec![stage(&second, &reply)]);
        assert_eq!(outcomes.try_recv().unwrap().unwrap().path, first);
        assert!(second.exists() && outcomes.try_recv().is_err());
        assert!(renamed.sync_and_rename(Vec::new()).is_empty());
        assert_eq!(outcomes.try_recv().unwrap().unwrap().path, second);
    }

    #[test]
    fn a_file_that_cannot_be_renamed_takes_no_other_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let (taken, free, (reply, outcomes)) =
            (dir.path().join("taken"), dir.path().join("free"), mpsc::sync_channel(4));
        std::fs::create_dir(&taken).unwrap();
        let renamed = RenamedFiles::default().sync_and_rename(vec![stage(&taken, &reply), stage(&free, &reply)]);
        assert!(renamed.sync_and_rename(Vec::new()).is_empty());
        let placed: Vec<bool> = outcomes.try_iter().map(|outcome| outcome.is_ok()).collect();
        assert_eq!(placed, [false, true]);
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
    }

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
