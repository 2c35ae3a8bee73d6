//! The agents there are, in memory: every request begins here, so it costs no query.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::Facts;

/// An agent that is not destroyed.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub facts: Arc<Facts>,
    pub permissions: Value,
    pub created_at: Timestamp,
    pub channel_id: Option<String>,
    pub guild_id: Option<String>,
    /// Of the agent.json that was looked at last.
    pub stamp: String,
    /// What is wrong with that agent.json, if the one before it is still in force.
    pub problem: Option<String>,
}

#[derive(Debug, Default)]
struct Inner {
    names: BTreeMap<String, Uuid>,
    entries: HashMap<Uuid, Arc<Entry>>,
    /// Of a channel that more than one names, only the first.
    channels: HashMap<u64, Uuid>,
    chosen: Option<Uuid>,
}

impl Entry {
    /// The channel that it has in Discord.
    #[must_use]
    pub fn channel(&self) -> Option<u64> {
        self.channel_id.as_ref()?.parse().ok().filter(|id| *id != 0)
    }
}

impl Inner {
    /// Its channel is another's now, where another names it too.
    fn leave_channel(&mut self, entry: &Entry) {
        let Some(channel) = entry.channel().filter(|channel| self.channels.get(channel) == Some(&entry.facts.id))
        else {
            return;
        };
        self.channels.remove(&channel);
        if let Some(other) = self.entries.values().find(|other| other.channel() == Some(channel)) {
            self.channels.insert(channel, other.facts.id);
        }
    }
}

/// All agents that are not destroyed.
#[derive(Debug, Default)]
pub struct Directory {
    inner: RwLock<Inner>,
}

impl Directory {
    fn read(&self) -> std::sync::RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an agent, or puts it in place of the one with its id.
    pub fn put(&self, entry: Entry) -> Arc<Entry> {
        let entry = Arc::new(entry);
        let mut inner = self.write();
        let id = entry.facts.id;
        if let Some(old) = inner.entries.insert(id, entry.clone()) {
            if old.facts.name != entry.facts.name {
                inner.names.remove(&old.facts.name);
            }
            if old.channel() != entry.channel() {
                inner.leave_channel(&old);
            }
        }
        if let Some(channel) = entry.channel() {
            inner.channels.entry(channel).or_insert(id);
        }
        inner.names.insert(entry.facts.name.clone(), id);
        entry
    }

    /// Takes an agent out.
    pub fn remove(&self, id: Uuid) {
        let mut inner = self.write();
        if let Some(old) = inner.entries.remove(&id) {
            inner.names.remove(&old.facts.name);
            inner.leave_channel(&old);
        }
        if inner.chosen == Some(id) {
            inner.chosen = None;
        }
    }

    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<Arc<Entry>> {
        let inner = self.read();
        inner.names.get(name).and_then(|id| inner.entries.get(id)).cloned()
    }

    #[must_use]
    pub fn by_id(&self, id: Uuid) -> Option<Arc<Entry>> {
        self.read().entries.get(&id).cloned()
    }

    /// The agent that has this channel.
    #[must_use]
    pub fn by_channel(&self, channel: u64) -> Option<Arc<Entry>> {
        let inner = self.read();
        inner.channels.get(&channel).and_then(|id| inner.entries.get(id)).cloned()
    }

    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Entry>> {
        let inner = self.read();
        inner.names.values().filter_map(|id| inner.entries.get(id)).cloned().collect()
    }

    /// Names, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.read().names.keys().cloned().collect()
    }

    /// The agent that is meant when none is named: the chosen one, else the only one.
    #[must_use]
    pub fn implied(&self) -> Option<Arc<Entry>> {
        let inner = self.read();
        let only = || if inner.names.len() == 1 { inner.names.values().next().copied() } else { None };
        inner.chosen.or_else(only).and_then(|id| inner.entries.get(&id)).cloned()
    }

    /// The agent chosen with `agent use`.
    #[must_use]
    pub fn chosen(&self) -> Option<Arc<Entry>> {
        let inner = self.read();
        inner.chosen.and_then(|id| inner.entries.get(&id)).cloned()
    }

    /// Chooses an agent.
    pub fn choose(&self, id: Option<Uuid>) {
        self.write().chosen = id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_leads_to_one_agent_however_they_come_and_go() {
        let directory = Directory::default();
        let entry = |id: u128, channel: Option<&str>| Entry {
            facts: Arc::new(Facts { id: Uuid::from_u128(id), name: format!("a{id}"), ..Facts::default() }),
            permissions: Value::Null,
            created_at: Timestamp::UNIX_EPOCH,
            channel_id: channel.map(str::to_owned),
            guild_id: None,
            stamp: String::new(),
            problem: None,
        };
        let of = |channel| directory.by_channel(channel).map(|entry| entry.facts.id.as_u128());
        directory.put(entry(1, Some("7")));
        directory.put(entry(2, Some("7")));
        directory.put(entry(3, Some("none")));
        assert_eq!((of(7), of(0)), (Some(1), None));
        directory.put(entry(1, Some("8")));
        assert_eq!((of(7), of(8)), (Some(2), Some(1)));
        directory.put(entry(1, None));
        directory.remove(Uuid::from_u128(2));
        assert_eq!((of(7), of(8)), (None, None));
    }
}
