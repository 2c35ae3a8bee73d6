//! One writer a file at a time, whichever call, turn or agent it comes from.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// More than there are writers at once, as a rule.
const LOCK_COUNT: usize = 64;

/// Locks of files. Two files may share one; nobody holds two.
#[derive(Debug)]
pub struct FileLocks {
    locks: [Mutex<()>; LOCK_COUNT],
    hash: RandomState,
}

impl Default for FileLocks {
    fn default() -> Self {
        Self { locks: [const { Mutex::new(()) }; LOCK_COUNT], hash: RandomState::new() }
    }
}

impl FileLocks {
    /// Waits until nobody else writes the file of this name in this folder (its device and number: a workspace may be
    /// reached by two paths). Blocks.
    pub fn lock(&self, folder: (u64, u64), name: &str) -> MutexGuard<'_, ()> {
        let at = self.hash.hash_one((folder, name)) as usize % LOCK_COUNT;
        self.locks[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
