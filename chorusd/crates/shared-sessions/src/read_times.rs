//! When copies were read last.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chorus_base::sync::Mutex;

/// Time after a read for which a copy stays, whatever its size: a request may be about to open it.
pub(crate) const KEEP_AFTER_READ: Duration = Duration::from_secs(10 * 60);

/// Limit of the copies whose reads are remembered.
const MAX_REMEMBERED: usize = 100_000;

/// The reads since the start of the daemon. Of others the time is that of the file system, which may be a day old.
#[derive(Debug, Default)]
pub(crate) struct ReadTimes(Mutex<HashMap<PathBuf, Instant>>);

impl ReadTimes {
    pub(crate) fn note(&self, path: &Path) {
        let mut reads = self.0.lock();
        if reads.len() >= MAX_REMEMBERED {
            reads.retain(|_, at| at.elapsed() < KEEP_AFTER_READ);
        }
        reads.insert(path.to_owned(), Instant::now());
    }

    /// Returns how long ago a copy was read, if that is remembered.
    pub(crate) fn age(&self, path: &Path) -> Option<Duration> {
        self.0.lock().get(path).map(Instant::elapsed)
    }

    pub(crate) fn forget(&self, path: &Path) {
        self.0.lock().remove(path);
    }
}
