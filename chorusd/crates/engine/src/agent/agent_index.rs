//! The in-memory index of all agents. Every request starts here, so looking up an agent costs no query.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_base::sync::RwLock;
use chorus_session::conversation::{ConversationKey, MAIN_CONVERSATION};
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::conversation_index::ConversationIndex;
use crate::tools::ConversationNames;

/// An agent that is not destroyed.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEntry {
    pub settings: Arc<AgentSettings>,
    pub permissions: Value,
    pub created_at: Timestamp,
    pub channel_id: Option<String>,
    pub guild_id: Option<String>,
    /// Stamp of the agent.json that was last read.
    pub config_stamp: String,
    /// The error in that agent.json; the settings of the version before it stay in force.
    pub config_problem: Option<String>,
}

#[derive(Debug, Default)]
struct Inner {
    names: BTreeMap<String, Uuid>,
    entries: HashMap<Uuid, Arc<AgentEntry>>,
    /// If several agents name the same channel, only the first.
    channels: HashMap<u64, Uuid>,
    selected: Option<Uuid>,
}

impl AgentEntry {
    /// Returns the id of the agent's Discord channel.
    #[must_use]
    pub fn channel(&self) -> Option<u64> {
        self.channel_id.as_ref()?.parse().ok().filter(|id| *id != 0)
    }
}

impl Inner {
    /// Removes the agent's channel. If another agent names it too, that one gets it.
    fn release_channel(&mut self, entry: &AgentEntry) {
        let Some(channel) = entry.channel().filter(|channel| self.channels.get(channel) == Some(&entry.settings.id))
        else {
            return;
        };
        self.channels.remove(&channel);
        if let Some(other) = self.entries.values().find(|other| other.channel() == Some(channel)) {
            self.channels.insert(channel, other.settings.id);
        }
    }
}

/// All agents that are not destroyed.
#[derive(Debug, Default)]
pub struct AgentIndex {
    inner: RwLock<Inner>,
    /// Their conversations beside `main`.
    pub conversations: ConversationIndex,
}

impl ConversationNames for AgentIndex {
    fn has_several(&self, agent: Uuid) -> bool {
        self.conversations.has_any(agent)
    }

    fn name(&self, key: ConversationKey) -> Option<String> {
        if key.is_main() { Some(MAIN_CONVERSATION.to_owned()) } else { self.conversations.name(key) }
    }
}

impl AgentIndex {
    /// Inserts an agent, or replaces the one with its id.
    pub fn insert(&self, entry: AgentEntry) -> Arc<AgentEntry> {
        let entry = Arc::new(entry);
        let mut inner = self.inner.write();
        let id = entry.settings.id;
        if let Some(old) = inner.entries.insert(id, entry.clone()) {
            if old.settings.name != entry.settings.name {
                inner.names.remove(&old.settings.name);
            }
            if old.channel() != entry.channel() {
                inner.release_channel(&old);
            }
        }
        if let Some(channel) = entry.channel() {
            inner.channels.entry(channel).or_insert(id);
        }
        inner.names.insert(entry.settings.name.clone(), id);
        entry
    }

    /// Removes an agent.
    pub fn remove(&self, id: Uuid) {
        self.remove_moved(id);
        self.inner.write().selected.take_if(|selected| *selected == id);
    }

    /// Removes an agent that another daemon has now. It stays the selected one.
    pub fn remove_moved(&self, id: Uuid) {
        let mut inner = self.inner.write();
        if let Some(old) = inner.entries.remove(&id) {
            inner.names.remove(&old.settings.name);
            inner.release_channel(&old);
        }
    }

    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<Arc<AgentEntry>> {
        let inner = self.inner.read();
        inner.names.get(name).and_then(|id| inner.entries.get(id)).cloned()
    }

    #[must_use]
    pub fn by_id(&self, id: Uuid) -> Option<Arc<AgentEntry>> {
        self.inner.read().entries.get(&id).cloned()
    }

    /// Returns the agent that has this channel.
    #[must_use]
    pub fn by_channel(&self, channel: u64) -> Option<Arc<AgentEntry>> {
        let inner = self.inner.read();
        inner.channels.get(&channel).and_then(|id| inner.entries.get(id)).cloned()
    }

    /// Returns all agents, sorted by name.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<AgentEntry>> {
        let inner = self.inner.read();
        inner.names.values().filter_map(|id| inner.entries.get(id)).cloned().collect()
    }

    /// Returns the settings of the agents that `is_wanted` is true of.
    #[must_use]
    pub fn settings_where(&self, is_wanted: impl Fn(&AgentSettings) -> bool) -> Vec<Arc<AgentSettings>> {
        let inner = self.inner.read();
        let settings = inner.entries.values().map(|entry| &entry.settings);
        settings.filter(|settings| is_wanted(settings)).cloned().collect()
    }

    /// Removes the names of agents from `names`.
    pub fn retain_unknown(&self, names: &mut HashSet<String>) {
        let inner = self.inner.read();
        names.retain(|name| !inner.names.contains_key(name));
    }

    /// Returns all names, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.inner.read().names.keys().cloned().collect()
    }

    /// Returns the names of the agents that are not only there for imported conversations, sorted.
    #[must_use]
    pub fn own_names(&self) -> Vec<String> {
        let inner = self.inner.read();
        let entries = inner.names.values().filter_map(|id| inner.entries.get(id));
        entries
            .filter(|entry| entry.settings.import_source.is_none())
            .map(|entry| entry.settings.name.clone())
            .collect()
    }

    /// Returns the agents that hold the imported conversations of other programs, sorted by name.
    #[must_use]
    pub fn import_agents(&self) -> Vec<Arc<AgentEntry>> {
        let inner = self.inner.read();
        let entries = inner.names.values().filter_map(|id| inner.entries.get(id));
        entries.filter(|entry| entry.settings.import_source.is_some()).cloned().collect()
    }

    /// Returns the agent for requests that name none: the selected one, else the only one. Agents that hold imported
    /// conversations do not count.
    #[must_use]
    pub fn default_agent(&self) -> Option<Arc<AgentEntry>> {
        let inner = self.inner.read();
        let only = || {
            let mut own = inner
                .names
                .values()
                .filter(|id| inner.entries.get(id).is_some_and(|entry| entry.settings.import_source.is_none()));
            own.next().filter(|_| own.next().is_none()).copied()
        };
        inner.selected.or_else(only).and_then(|id| inner.entries.get(&id)).cloned()
    }

    /// Returns the id of the agent selected with `agent use`, also if another daemon has it.
    #[must_use]
    pub fn selected_id(&self) -> Option<Uuid> {
        self.inner.read().selected
    }

    /// Returns the agent selected with `agent use`.
    #[must_use]
    pub fn selected(&self) -> Option<Arc<AgentEntry>> {
        let inner = self.inner.read();
        inner.selected.and_then(|id| inner.entries.get(&id)).cloned()
    }

    /// Selects an agent.
    pub fn select(&self, id: Option<Uuid>) {
        self.inner.write().selected = id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_leads_to_one_agent_however_they_come_and_go() {
        let directory = AgentIndex::default();
        let entry = |id: u128, channel: Option<&str>| AgentEntry {
            settings: Arc::new(AgentSettings {
                id: Uuid::from_u128(id),
                name: format!("a{id}"),
                ..AgentSettings::default()
            }),
            permissions: Value::Null,
            created_at: Timestamp::UNIX_EPOCH,
            channel_id: channel.map(str::to_owned),
            guild_id: None,
            config_stamp: String::new(),
            config_problem: None,
        };
        let of = |channel| directory.by_channel(channel).map(|entry| entry.settings.id.as_u128());
        directory.insert(entry(1, Some("7")));
        directory.insert(entry(2, Some("7")));
        directory.insert(entry(3, Some("none")));
        assert_eq!((of(7), of(0)), (Some(1), None));
        directory.insert(entry(1, Some("8")));
        assert_eq!((of(7), of(8)), (Some(2), Some(1)));
        directory.insert(entry(1, None));
        directory.remove(Uuid::from_u128(2));
        assert_eq!((of(7), of(8)), (None, None));
    }
}
