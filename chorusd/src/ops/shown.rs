//! What the last history showed, so that its numbers can be used.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

use crate::who::Requester;

/// Whose numbers are remembered at most; those whose last history is the oldest are forgotten.
const USERS: usize = 1000;

/// Numbers of the last history, by user and agent. Only the daemon's own user and root may connect, so those are one user; people in
/// channels have their own numbers.
#[derive(Debug, Default)]
pub struct Shown(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    users: HashMap<String, User>,
    clock: u64,
}

#[derive(Debug, Default)]
struct User {
    /// Per agent, when it was shown and what.
    agents: HashMap<Uuid, (u64, Page)>,
    /// The history of all agents.
    all: Option<(u64, Page)>,
    /// When something was shown last.
    last: u64,
}

#[derive(Debug, Clone)]
struct Page {
    /// Number of the first session.
    first: u64,
    ids: Vec<Uuid>,
}

impl Page {
    fn find(&self, number: u64) -> Option<Uuid> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.ids.get(index).copied()
    }
}

impl Shown {
    /// Remembers a page that `by` was shown, whose first session has the number `first`; of all agents where none is given.
    pub fn remember(&self, by: &Requester, agent: Option<Uuid>, first: u64, ids: Vec<Uuid>) {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.clock += 1;
        let clock = memory.clock;
        let page = (clock, Page { first, ids });
        let user = memory.users.entry(by.to_string()).or_default();
        user.last = clock;
        match agent {
            Some(agent) => {
                user.agents.insert(agent, page);
            }
            None => user.all = Some(page),
        }
        if memory.users.len() > USERS {
            let oldest = memory.users.iter().filter(|(name, _)| **name != owner()).min_by_key(|(_, user)| user.last);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                memory.users.remove(&name);
            }
        }
    }

    /// The session of `agent` that `by` was shown under `number`, by whichever history came last.
    #[must_use]
    pub fn find(&self, by: &Requester, agent: Uuid, number: u64) -> Option<Uuid> {
        let memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let user = memory.users.get(&by.to_string())?;
        let mut pages: Vec<&(u64, Page)> = user.agents.get(&agent).into_iter().chain(&user.all).collect();
        pages.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        pages.first().and_then(|(_, page)| page.find(number))
    }
}

/// The owner is remembered however many others there are.
fn owner() -> String {
    Requester::Owner.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(id: usize) -> Requester {
        Requester::Person { id: id.to_string(), name: "Mara".into(), roles: Vec::new() }
    }

    #[test]
    fn the_last_history_counts() {
        let shown = Shown::default();
        let by = &Requester::Owner;
        let (agent, a, b) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        assert_eq!(shown.find(by, agent, 1), None);
        shown.remember(by, Some(agent), 11, vec![a, b]);
        assert_eq!(shown.find(by, agent, 12), Some(b));
        assert_eq!((shown.find(by, agent, 1), shown.find(by, agent, 13), shown.find(by, agent, 0)), (None, None, None));
        shown.remember(by, None, 1, vec![b]);
        assert_eq!(shown.find(by, agent, 1), Some(b));
        assert_eq!(shown.find(by, agent, 12), None);
    }

    #[test]
    fn everybody_has_their_own_numbers_and_many_push_out_the_oldest_but_never_the_owner() {
        let shown = Shown::default();
        let (agent, a, b) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        shown.remember(&Requester::Owner, Some(agent), 1, vec![a]);
        shown.remember(&person(0), Some(agent), 1, vec![b]);
        assert_eq!(shown.find(&Requester::Owner, agent, 1), Some(a));
        assert_eq!(shown.find(&person(0), agent, 1), Some(b));
        assert_eq!(shown.find(&person(1), agent, 1), None);
        for id in 1..=USERS {
            shown.remember(&person(id), Some(agent), 1, vec![b]);
        }
        assert_eq!(shown.find(&Requester::Owner, agent, 1), Some(a));
        assert_eq!((shown.find(&person(0), agent, 1), shown.find(&person(USERS), agent, 1)), (None, Some(b)));
    }
}
