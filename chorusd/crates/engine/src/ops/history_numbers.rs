//! Remembers the last history that a requester was shown, so that its numbers can select sessions.

use std::collections::{BTreeMap, HashMap};

use chorus_base::requester::Requester;
use chorus_base::sync::Mutex;
use uuid::Uuid;

/// The limit on remembered users; the one whose last history is the oldest is forgotten.
const MAX_USERS: usize = 1000;

/// The limit on numbers of one list: those shown last are remembered.
const MAX_NUMBERS: usize = 5000;

/// Session numbers of the last history, by user and agent. Only the daemon's own user and root may connect, so all
/// clients of the socket are one user; each member in a channel has numbers of their own.
#[derive(Debug, Default)]
pub struct HistoryNumbers(Mutex<NumbersState>);

#[derive(Debug, Default)]
struct NumbersState {
    users: HashMap<String, UserPages>,
    clock: u64,
}

#[derive(Debug, Default)]
struct UserPages {
    /// The page of each agent, and when it was shown (in `clock` ticks).
    agents: HashMap<Uuid, (u64, NumberedList)>,
    /// The last page with sessions of all agents.
    all_agents: Option<(u64, NumberedList)>,
    /// When a page was shown last.
    last_shown: u64,
}

/// The sessions of one list, by number. The first page begins a new list, the others extend it.
#[derive(Debug, Clone, Default)]
struct NumberedList(BTreeMap<u64, Uuid>);

impl NumberedList {
    fn add_page(&mut self, first_number: u64, ids: Vec<Uuid>) {
        if first_number <= 1 {
            self.0.clear();
        }
        self.0.extend((first_number..).zip(ids));
        while self.0.len() > MAX_NUMBERS {
            self.0.pop_first();
        }
    }

    fn find(&self, number: u64) -> Option<Uuid> {
        self.0.get(&number).copied()
    }
}

impl HistoryNumbers {
    /// Remembers the page that `by` was shown, whose first session has the number `first`. Without `agent` it is a
    /// history of all agents.
    pub fn record_page(&self, by: &Requester, agent: Option<Uuid>, first: u64, ids: Vec<Uuid>) {
        let mut memory = self.0.lock();
        memory.clock += 1;
        let clock = memory.clock;
        let user = memory.users.entry(by.to_string()).or_default();
        user.last_shown = clock;
        let (at, list) = match agent {
            Some(agent) => user.agents.entry(agent).or_default(),
            None => user.all_agents.get_or_insert_default(),
        };
        *at = clock;
        list.add_page(first, ids);
        if memory.users.len() > MAX_USERS {
            let oldest =
                memory.users.iter().filter(|(name, _)| **name != owner_key()).min_by_key(|(_, user)| user.last_shown);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                memory.users.remove(&name);
            }
        }
    }

    /// Returns the session that `number` means for `by` in the list shown last. For the owner that is the last list of
    /// any agent; for a member of a channel, the more recent of the list of `agent` and that of all agents.
    #[must_use]
    pub fn find(&self, by: &Requester, agent: Uuid, number: u64) -> Option<Uuid> {
        let memory = self.0.lock();
        let user = memory.users.get(&by.to_string())?;
        let is_meant = |of: &Uuid| *by == Requester::Owner || *of == agent;
        let lists = user.agents.iter().filter(|(of, _)| is_meant(of)).map(|(_, list)| list).chain(&user.all_agents);
        lists.max_by_key(|(at, _)| *at).and_then(|(_, list)| list.find(number))
    }
}

/// The key of the owner, who is never forgotten.
fn owner_key() -> String {
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
        let shown = HistoryNumbers::default();
        let by = &Requester::Owner;
        let (agent, a, b) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        assert_eq!(shown.find(by, agent, 1), None);
        shown.record_page(by, Some(agent), 11, vec![a, b]);
        assert_eq!(shown.find(by, agent, 12), Some(b));
        assert_eq!((shown.find(by, agent, 1), shown.find(by, agent, 13), shown.find(by, agent, 0)), (None, None, None));
        shown.record_page(by, None, 1, vec![b]);
        assert_eq!(shown.find(by, agent, 1), Some(b));
        assert_eq!(shown.find(by, agent, 12), None);
    }

    #[test]
    fn the_last_list_of_any_agent_counts_for_the_owner_and_that_of_a_channel_for_its_members() {
        let (one, other, a, b) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3), Uuid::from_u128(4));
        for (by, found) in [(Requester::Owner, b), (person(1), a)] {
            let shown = HistoryNumbers::default();
            shown.record_page(&by, Some(one), 1, vec![a]);
            shown.record_page(&by, Some(other), 1, vec![b]);
            assert_eq!(shown.find(&by, one, 1), Some(found));
        }
    }

    #[test]
    fn the_numbers_of_earlier_pages_hold_until_the_next_list() {
        let shown = HistoryNumbers::default();
        let by = &Requester::Owner;
        let (agent, a, b) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        shown.record_page(by, Some(agent), 1, vec![a]);
        shown.record_page(by, Some(agent), 2, vec![b]);
        assert_eq!((shown.find(by, agent, 1), shown.find(by, agent, 2)), (Some(a), Some(b)));
        shown.record_page(by, Some(agent), 1, vec![b]);
        assert_eq!((shown.find(by, agent, 1), shown.find(by, agent, 2)), (Some(b), None));
    }

    #[test]
    fn everybody_has_their_own_numbers_and_many_push_out_the_oldest_but_never_the_owner() {
        let shown = HistoryNumbers::default();
        let (agent, a, b) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        shown.record_page(&Requester::Owner, Some(agent), 1, vec![a]);
        shown.record_page(&person(0), Some(agent), 1, vec![b]);
        assert_eq!(shown.find(&Requester::Owner, agent, 1), Some(a));
        assert_eq!(shown.find(&person(0), agent, 1), Some(b));
        assert_eq!(shown.find(&person(1), agent, 1), None);
        for id in 1..=MAX_USERS {
            shown.record_page(&person(id), Some(agent), 1, vec![b]);
        }
        assert_eq!(shown.find(&Requester::Owner, agent, 1), Some(a));
        assert_eq!((shown.find(&person(0), agent, 1), shown.find(&person(MAX_USERS), agent, 1)), (None, Some(b)));
    }
}
