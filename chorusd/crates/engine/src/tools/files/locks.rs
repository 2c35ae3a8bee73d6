//! Locks that admit one writer per file at a time, across calls, turns and agents.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Usually more than there are writers at once.
const LOCK_COUNT: usize = 64;

/// Locks by the hash of a file. Two files may share a lock; no caller holds two.
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
    /// Locks the file `name` in a folder. The folder is identified by device and inode, because two paths may lead to
    /// one workspace. Blocks.
    pub fn lock(&self, folder: (u64, u64), name: &str) -> MutexGuard<'_, ()> {
        let at = self.hash.hash_one((folder, name)) as usize % LOCK_COUNT;
        self.locks[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
