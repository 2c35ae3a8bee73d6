//! What is being given to somebody right now, so that nobody else is given it.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The keys that are reserved.
#[derive(Debug, Clone)]
pub struct Reservations<K>(Arc<Mutex<HashSet<K>>>);

impl<K> Default for Reservations<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// A key that nobody else is given while this lives.
#[derive(Debug)]
pub struct Reserved<K: Eq + Hash> {
    all: Reservations<K>,
    key: K,
}

impl<K: Clone + Eq + Hash> Reservations<K> {
    /// Reserves `key`; `None` where somebody has it.
    #[must_use]
    pub fn take(&self, key: K) -> Option<Reserved<K>> {
        self.inner().insert(key.clone()).then(|| Reserved { all: self.clone(), key })
    }
}

impl<K: Eq + Hash> Reservations<K> {
    /// Whether somebody has it.
    #[must_use]
    pub fn has(&self, key: &K) -> bool {
        self.inner().contains(key)
    }
}

impl<K> Reservations<K> {
    fn inner(&self) -> MutexGuard<'_, HashSet<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Reserved<K> {
    /// What is reserved.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.key
    }
}

impl<K: Eq + Hash> Drop for Reserved<K> {
    fn drop(&mut self) {
        self.all.inner().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_free_again_when_its_holder_is_gone() {
        let all = Reservations::default();
        let one = all.take(1).unwrap();
        assert!(all.has(&1) && all.take(1).is_none() && all.take(2).is_some());
        drop(one);
        assert!(!all.has(&1));
        assert_eq!(*all.take(1).unwrap().key(), 1);
    }
}
