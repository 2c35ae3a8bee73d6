//! A mutex for each key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use chorus_base::sync::Mutex;
use tokio::sync::OwnedMutexGuard;

/// Maps keys to mutexes; those that nobody holds or waits for are removed.
#[derive(Debug)]
pub struct KeyedMutex<K>(Mutex<HashMap<K, Weak<tokio::sync::Mutex<()>>>>);

impl<K> Default for KeyedMutex<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> KeyedMutex<K> {
    /// Locks the mutex of `key`.
    pub async fn lock(&self, key: K) -> OwnedMutexGuard<()> {
        self.get(key).lock_owned().await
    }

    /// Locks the mutex of `key`. Blocks; panics in an asynchronous task.
    pub fn blocking_lock(&self, key: K) -> OwnedMutexGuard<()> {
        self.get(key).blocking_lock_owned()
    }

    fn get(&self, key: K) -> Arc<tokio::sync::Mutex<()>> {
        let mut mutexes = self.0.lock();
        mutexes.retain(|_, mutex| mutex.strong_count() > 0);
        let entry = mutexes.entry(key).or_default();
        entry.upgrade().unwrap_or_else(|| {
            let mutex = Arc::default();
            *entry = Arc::downgrade(&mutex);
            mutex
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_waits_for_itself_only_and_is_forgotten() {
        let locks = KeyedMutex::default();
        let first = locks.blocking_lock("a");
        drop(locks.blocking_lock("b"));
        assert!(locks.get("a").try_lock_owned().is_err(), "it is held");
        drop(first);
        drop(locks.blocking_lock("c"));
        assert_eq!(locks.0.lock().keys().copied().collect::<Vec<_>>(), ["c"]);
    }
}
