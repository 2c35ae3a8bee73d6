//! What the last history showed, so that its numbers can be used.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

/// Numbers of the last history, by agent. Only the daemon's own user and root may connect, so there is one memory for
/// all of them.
#[derive(Debug, Default)]
pub struct Shown(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    /// Per agent, when it was shown and what.
    agents: HashMap<Uuid, (u64, Page)>,
    /// The history of all agents.
    all: Option<(u64, Page)>,
    clock: u64,
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
    /// Remembers a page whose first session has the number `first`; of all agents where none is given.
    pub fn remember(&self, agent: Option<Uuid>, first: u64, ids: Vec<Uuid>) {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.clock += 1;
        let page = (memory.clock, Page { first, ids });
        match agent {
            Some(agent) => {
                memory.agents.insert(agent, page);
            }
            None => memory.all = Some(page),
        }
    }

    /// The session that was shown to `agent` under `number`, by whichever history came last.
    #[must_use]
    pub fn find(&self, agent: Uuid, number: u64) -> Option<Uuid> {
        let memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pages: Vec<&(u64, Page)> = memory.agents.get(&agent).into_iter().chain(&memory.all).collect();
        pages.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        pages.first().and_then(|(_, page)| page.find(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_history_counts() {
        let shown = Shown::default();
        let (agent, a, b) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        assert_eq!(shown.find(agent, 1), None);
        shown.remember(Some(agent), 11, vec![a, b]);
        assert_eq!(shown.find(agent, 12), Some(b));
        assert_eq!((shown.find(agent, 1), shown.find(agent, 13), shown.find(agent, 0)), (None, None, None));
        shown.remember(None, 1, vec![b]);
        assert_eq!(shown.find(agent, 1), Some(b));
        assert_eq!(shown.find(agent, 12), None);
    }
}
