//! In-memory reservations of keys (agent names, session names, session ids) while they are being created.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use chorus_base::sync::Mutex;

/// The set of reserved keys.
#[derive(Debug, Clone)]
pub struct Reservations<K>(Arc<Mutex<HashSet<K>>>);

impl<K> Default for Reservations<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// A reserved key; dropping this frees it.
#[derive(Debug)]
pub struct Reservation<K: Eq + Hash> {
    all: Reservations<K>,
    key: K,
}

impl<K: Clone + Eq + Hash> Reservations<K> {
    /// Reserves `key`; returns `None` if it is already reserved.
    #[must_use]
    pub fn try_reserve(&self, key: K) -> Option<Reservation<K>> {
        self.0.lock().insert(key.clone()).then(|| Reservation { all: self.clone(), key })
    }
}

impl<K: Eq + Hash> Reservations<K> {
    /// Returns whether `key` is reserved.
    #[must_use]
    pub(crate) fn is_reserved(&self, key: &K) -> bool {
        self.0.lock().contains(key)
    }
}

impl<K: Eq + Hash> Reservation<K> {
    /// The reserved key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.key
    }
}

impl<K: Eq + Hash> Drop for Reservation<K> {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_free_again_when_its_holder_is_gone() {
        let all = Reservations::default();
        let one = all.try_reserve(1).unwrap();
        assert!(all.is_reserved(&1) && all.try_reserve(1).is_none() && all.try_reserve(2).is_some());
        drop(one);
        assert!(!all.is_reserved(&1));
        assert_eq!(*all.try_reserve(1).unwrap().key(), 1);
    }
}
