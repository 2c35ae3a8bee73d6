//! A map of bounded size that forgets what was not used for long.

use std::collections::HashMap;

/// Entries of one generation.
const GENERATION: usize = 16_384;

/// Maps hashes to numbers. When the young generation is full it becomes the old one, and the entries of the old one that
/// were not used since are dropped.
#[derive(Debug, Default)]
pub(super) struct RecentMap {
    young: HashMap<u64, u32>,
    old: HashMap<u64, u32>,
}

impl RecentMap {
    pub(super) fn get(&mut self, key: u64) -> Option<u32> {
        if let Some(value) = self.young.get(&key) {
            return Some(*value);
        }
        let value = self.old.remove(&key)?;
        self.insert(key, value);
        Some(value)
    }

    pub(super) fn insert(&mut self, key: u64, value: u32) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut map = RecentMap::default();
        for key in 0..5 * GENERATION as u64 {
            map.insert(key, 7);
            assert_eq!(map.get(0), Some(7), "used again and again");
        }
        assert_eq!(map.get(1), None);
        assert!(map.young.len() + map.old.len() <= 2 * GENERATION);
    }
}
