//! The lengths of groups, as the writer knows them.

use std::collections::HashMap;

/// Groups of which the length is kept.
const MAX_GROUPS: usize = 4096;

/// The greatest number of each of some groups that a source holds. Otherwise every source that holds the group is read for each message
/// that is added to it, and a conversation that is saved often has many.
#[derive(Debug, Default)]
pub(crate) struct GroupLengths(HashMap<u64, u64>);

impl GroupLengths {
    pub(crate) fn get(&self, group: u64) -> Option<u64> {
        self.0.get(&group).copied()
    }

    /// Stores the length of a group.
    pub(crate) fn set(&mut self, group: u64, length: u64) {
        if self.0.len() >= MAX_GROUPS && !self.0.contains_key(&group) {
            self.0.clear();
        }
        self.0.insert(group, length);
    }

    /// Stores that a source holds a group up to a number.
    pub(crate) fn extend(&mut self, group: u64, last: u64) {
        if let Some(length) = self.0.get_mut(&group) {
            *length = last.max(*length);
        }
    }

    /// Forgets a group.
    pub(crate) fn forget(&mut self, group: u64) {
        self.0.remove(&group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_grow_and_few_are_kept() {
        let mut lengths = GroupLengths::default();
        lengths.extend(1, 5);
        assert_eq!(lengths.get(1), None, "others may hold more");
        lengths.set(1, 5);
        lengths.extend(1, 3);
        assert_eq!(lengths.get(1), Some(5));
        lengths.extend(1, 7);
        assert_eq!(lengths.get(1), Some(7));
        lengths.forget(1);
        assert_eq!(lengths.get(1), None);
        for group in 0..3 * MAX_GROUPS as u64 {
            lengths.set(group, 1);
            assert!(lengths.0.len() <= MAX_GROUPS && lengths.get(group) == Some(1));
        }
    }
}
