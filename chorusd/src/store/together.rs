//! Many session files at once: a thread of their own brings those that wait to the disk together, with two syncs for all
//! of them instead of two each.

use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread;

use rustix::fs::{fstatfs, syncfs};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::background::stand_back;
use super::session_files::{Filled, Written, synced};
use crate::failure::Result;

/// Fewer files are synced one by one: syncing a file system also writes what others left there.
const MANY: usize = 16;

/// Most files that are placed together; those behind them wait that long.
const GROUP: usize = 256;

/// Files that may wait; one more is placed by itself.
const QUEUE: usize = 1024;

/// A file, and who hears that it is in its place.
type Waiting = (Filled, Box<dyn FnOnce(Result<Written>) + Send>);

/// Those that are on the disk go on to the databases so many at a time: a burst of them would stand before everybody
/// else's appends.
const LISTED_AT_ONCE: usize = 128;

/// The thread, once there is something for it to do.
#[derive(Debug)]
pub struct Together {
    queue: OnceLock<Option<SyncSender<Waiting>>>,
    rows: Semaphore,
}

impl Default for Together {
    fn default() -> Self {
        Self { queue: OnceLock::new(), rows: Semaphore::new(LISTED_AT_ONCE) }
    }
}

impl Together {
    /// Waits for the turn to list one, which lasts until this is dropped.
    pub async fn turn_to_list(&self) -> Option<SemaphorePermit<'_>> {
        self.rows.acquire().await.ok()
    }

    /// Brings a file to the disk and puts it in its place, with whatever other files wait. `placed` hears of it when it is
    /// durable, or why it is not: nothing is left behind then. Blocks where too many wait.
    pub fn place(&self, filled: Filled, placed: impl FnOnce(Result<Written>) + Send + 'static) {
        let waiting: Waiting = (filled, Box::new(placed));
        let queued = match self.queue.get_or_init(start) {
            Some(queue) => queue.try_send(waiting).map_err(|refused| match refused {
                TrySendError::Full(waiting) | TrySendError::Disconnected(waiting) => waiting,
            }),
            None => Err(waiting),
        };
        if let Err((filled, placed)) = queued {
            placed(filled.place());
        }
    }
}

fn start() -> Option<SyncSender<Waiting>> {
    let (queue, files) = mpsc::sync_channel(QUEUE);
    let spawned = thread::Builder::new().name("files".into()).spawn(move || run(&files));
    spawned.inspect_err(|e| tracing::warn!("files are placed one by one: no thread for them: {e}")).ok().map(|_| queue)
}

fn run(files: &Receiver<Waiting>) {
    stand_back();
    while let Ok(first) = files.recv() {
        let group: Vec<_> = std::iter::once(first).chain(files.try_iter()).take(GROUP).collect();
        if group.len() >= MANY && whole_file_system(group[0].0.file()) {
            place_all(group);
        } else {
            for (filled, reply) in group {
                reply(filled.place());
            }
        }
    }
}

/// All are synced, then all renamed, then all the names synced.
fn place_all(group: Vec<Waiting>) {
    let Ok(any) = group[0].0.file().try_clone() else {
        return group.into_iter().for_each(|(filled, reply)| reply(filled.place()));
    };
    let sync = || synced(syncfs(&any).map_err(Into::into));
    let mut result = sync();
    let mut placed = Vec::with_capacity(group.len());
    for (filled, reply) in group {
        let one = match &result {
            Ok(()) => filled.rename(),
            Err(e) => Err(filled.failed(e)),
        };
        placed.push((one, reply));
    }
    if result.is_ok() {
        result = sync();
    }
    for (one, reply) in placed {
        let one = match (&result, one) {
            (Err(e), Ok(written)) => Err(written.failed(e)),
            (_, one) => one,
        };
        reply(one);
    }
}

/// Whether a sync of the whole file system does for each file what a sync of the file does, errors included: on kernels
/// from 5.8 (see syncfs(2)) and the usual file systems. Others pass it on to nobody (FUSE), or may.
pub fn whole_file_system(file: &std::fs::File) -> bool {
    /// From linux/magic.h: ext2 to ext4, XFS, Btrfs, F2FS.
    const KNOWN: [u64; 4] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010];
    static TELLS: OnceLock<bool> = OnceLock::new();
    let known = |fd: &std::fs::File| {
        fstatfs(fd.as_fd()).is_ok_and(|stat| u64::try_from(stat.f_type).is_ok_and(|kind| KNOWN.contains(&kind)))
    };
    *TELLS.get_or_init(|| tells_errors(&rustix::system::uname().release().to_string_lossy())) && known(file)
}

fn tells_errors(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_that_tell_errors() {
        for release in ["5.8", "5.10.0-28-amd64", "6.1.0", "12.0"] {
            assert!(tells_errors(release), "{release}");
        }
        for release in ["5.7.19", "4.19.0-1", "", "linux"] {
            assert!(!tells_errors(release), "{release}");
        }
    }
}
