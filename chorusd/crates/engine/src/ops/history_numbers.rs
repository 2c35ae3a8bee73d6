//! Remembers the last history that a requester was shown, so that its numbers can select sessions.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::{fs, io};

use chorus_base::private_fs::write_private;
use chorus_base::requester::Requester;
use chorus_base::sync::Mutex;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The limit on remembered users; the one whose last history is the oldest is forgotten.
const MAX_USERS: usize = 1000;

/// The limit on numbers of one list: those shown last are remembered.
const MAX_NUMBERS: usize = 5000;

/// The limit on numbers of all lists that an orderly stop stores; the lists shown last come first.
const MAX_STORED_NUMBERS: usize = 20_000;

/// The limit in bytes of a stored file that is read.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Session numbers of the last history, by user and agent. Only the daemon's own user and root may connect, so all
/// clients of the socket are one user; each member in a channel has numbers of their own.
#[derive(Debug, Default)]
pub struct HistoryNumbers(Mutex<NumbersState>);

#[derive(Debug, Default, Serialize, Deserialize)]
struct NumbersState {
    users: HashMap<String, UserPages>,
    clock: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct UserPages {
    /// The page of each agent, and when it was shown (in `clock` ticks).
    agents: HashMap<Uuid, (u64, NumberedList)>,
    /// The last page with sessions of all agents.
    all_agents: Option<(u64, NumberedList)>,
    /// When a page was shown last.
    last_shown: u64,
}

/// The sessions of one list, by number. The first page begins a new list, the others extend it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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

impl NumbersState {
    /// Drops what would not fit into a small file: all but the lists shown last.
    fn truncate(&mut self) {
        let lists = |user: &UserPages| {
            let all = user.agents.values().chain(&user.all_agents);
            all.map(|(at, list)| (*at, list.0.len())).collect::<Vec<_>>()
        };
        let mut sizes: Vec<_> = self.users.values().flat_map(lists).collect();
        sizes.sort_unstable_by_key(|(at, _)| std::cmp::Reverse(*at));
        let mut total = 0;
        let too_old = sizes.iter().find_map(|(at, size)| {
            total += size;
            (total > MAX_STORED_NUMBERS).then_some(*at)
        });
        let Some(too_old) = too_old else { return };
        for user in self.users.values_mut() {
            user.agents.retain(|_, (at, _)| *at > too_old);
            user.all_agents = user.all_agents.take().filter(|(at, _)| *at > too_old);
        }
        self.users.retain(|_, user| !user.agents.is_empty() || user.all_agents.is_some());
    }
}

/// The file that keeps the numbers over a restart.
fn file_path(home: &Path) -> PathBuf {
    home.join("run/history_numbers.json")
}

impl HistoryNumbers {
    /// Returns the numbers that the last orderly stop stored, and deletes the file: after a crash, numbers of an older
    /// list must not select anything. A file that is damaged or cannot be deleted counts as none.
    #[must_use]
    pub fn take_stored(home: &Path) -> Self {
        let path = file_path(home);
        let taken = (|| {
            if fs::metadata(&path)?.len() > MAX_FILE_BYTES {
                fs::remove_file(&path)?;
                return Ok(None);
            }
            let bytes = fs::read(&path)?;
            fs::remove_file(&path)?;
            Ok::<_, io::Error>(serde_json::from_slice(&bytes).ok())
        })();
        Self(Mutex::new(taken.ok().flatten().unwrap_or_default()))
    }

    /// Stores the numbers for the next start.
    pub fn store(&self, home: &Path) {
        let mut memory = std::mem::take(&mut *self.0.lock());
        memory.truncate();
        if memory.users.is_empty() {
            return;
        }
        let stored = serde_json::to_vec(&memory).map_err(io::Error::other);
        if let Err(error) = stored.and_then(|bytes| write_private(&file_path(home), &bytes)) {
            tracing::warn!(%error, "cannot store the numbers of the last history for the next start");
        }
    }

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
    fn an_orderly_stop_stores_the_lists_shown_last_for_one_start() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("run")).unwrap();
        let shown = HistoryNumbers::default();
        let a = Uuid::from_u128(1);
        for agent in 1..=10 {
            shown.record_page(&person(agent), Some(a), 1, vec![a; MAX_NUMBERS]);
        }
        shown.record_page(&Requester::Owner, None, 11, vec![a]);
        shown.store(home.path());
        let size = fs::metadata(file_path(home.path())).unwrap().len();
        assert!(size < MAX_FILE_BYTES, "{size}");
        let next = HistoryNumbers::take_stored(home.path());
        assert_eq!((next.find(&Requester::Owner, a, 11), next.find(&Requester::Owner, a, 1)), (Some(a), None));
        assert_eq!((next.find(&person(10), a, 5000), next.find(&person(1), a, 1)), (Some(a), None));
        assert_eq!(HistoryNumbers::take_stored(home.path()).find(&Requester::Owner, a, 11), None, "as after a crash");
        for damaged in ["", "{}", "null", "{\"users\":{\"owner\":7},\"clock\":1}"] {
            fs::write(file_path(home.path()), damaged).unwrap();
            let next = HistoryNumbers::take_stored(home.path());
            assert_eq!(next.find(&Requester::Owner, a, 11), None);
            next.record_page(&Requester::Owner, None, 1, vec![a]);
            assert_eq!(next.find(&Requester::Owner, a, 1), Some(a));
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
