//! The sessions that wait to be indexed.

use std::collections::{HashSet, VecDeque};

use uuid::Uuid;

/// A stack in which each session is once: what changed last goes first.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    queue: VecDeque<Uuid>,
    queued: HashSet<Uuid>,
}

impl Backlog {
    pub(super) fn push(&mut self, id: Uuid) {
        if self.queued.insert(id) {
            self.queue.push_front(id);
        }
    }

    /// Takes at most `limit` sessions, the first ones first.
    pub(super) fn take(&mut self, limit: usize) -> Vec<Uuid> {
        let taken: Vec<Uuid> = self.queue.drain(..limit.min(self.queue.len())).collect();
        for id in &taken {
            self.queued.remove(id);
        }
        taken
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_once_and_changes_come_first() {
        let ids: Vec<Uuid> = (1..=4).map(Uuid::from_u128).collect();
        let mut backlog = Backlog::default();
        ids[..3].iter().rev().for_each(|id| backlog.push(*id));
        backlog.push(ids[3]);
        backlog.push(ids[0]);
        assert_eq!(backlog.take(2), [ids[3], ids[0]]);
        backlog.push(ids[3]);
        assert_eq!(backlog.take(9), [ids[3], ids[1], ids[2]]);
        assert!(backlog.is_empty());
    }
}
