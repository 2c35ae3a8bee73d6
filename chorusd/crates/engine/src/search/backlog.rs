//! The sessions that wait to be indexed.

use std::collections::{HashMap, VecDeque};

use uuid::Uuid;

/// Outdated entries that are not worth to be removed.
const MAX_OUTDATED: usize = 1024;

/// A stack in which each session is once: what changed last goes first.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Sessions with the number of the push. An entry is outdated if the session was pushed again.
    queue: VecDeque<(Uuid, u64)>,
    /// The last push of each waiting session.
    pushes: HashMap<Uuid, u64>,
    next_push: u64,
}

impl Backlog {
    /// Puts a session in front, from wherever it is.
    pub(super) fn push(&mut self, id: Uuid) {
        self.next_push += 1;
        self.pushes.insert(id, self.next_push);
        self.queue.push_front((id, self.next_push));
        if self.queue.len() > 2 * self.pushes.len() + MAX_OUTDATED {
            self.queue.retain(|(id, push)| self.pushes.get(id) == Some(push));
        }
    }

    /// Puts back what was taken and not indexed, in the same order.
    pub(super) fn put_back(&mut self, ids: Vec<Uuid>) {
        ids.into_iter().rev().for_each(|id| self.push(id));
    }

    /// Takes at most `limit` sessions, the first ones first.
    pub(super) fn take(&mut self, limit: usize) -> Vec<Uuid> {
        let mut taken = Vec::new();
        while taken.len() < limit
            && let Some((id, push)) = self.queue.pop_front()
        {
            if self.pushes.get(&id) == Some(&push) {
                self.pushes.remove(&id);
                taken.push(id);
            }
        }
        taken
    }

    pub(super) fn len(&self) -> usize {
        self.pushes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pushes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_once_and_changes_come_first() {
        let ids: Vec<Uuid> = (1..=4).map(Uuid::from_u128).collect();
        let mut backlog = Backlog::default();
        backlog.put_back(ids[..3].to_vec());
        backlog.push(ids[3]);
        backlog.push(ids[1]);
        assert_eq!(backlog.len(), 4);
        assert_eq!(backlog.take(2), [ids[1], ids[3]], "one that waits already comes first, too");
        backlog.push(ids[3]);
        assert_eq!(backlog.take(9), [ids[3], ids[0], ids[2]]);
        assert!(backlog.is_empty() && backlog.take(1).is_empty());
    }

    #[test]
    fn one_that_changes_all_the_time_takes_no_memory() {
        let mut backlog = Backlog::default();
        for _ in 0..10 * MAX_OUTDATED {
            backlog.push(Uuid::nil());
            backlog.push(Uuid::max());
        }
        assert!(backlog.queue.len() <= MAX_OUTDATED + 4);
        assert_eq!(backlog.take(9), [Uuid::max(), Uuid::nil()]);
    }
}
