//! The in-memory index of the conversations that agents have beside `main`, so that finding one costs no query.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chorus_base::sync::RwLock;
use chorus_journal::ConversationRow;
use chorus_proto::ConversationRef;
use chorus_session::conversation::ConversationKey;
use uuid::Uuid;

/// The conversations of all agents, open and closed, without `main`.
#[derive(Debug, Default)]
pub struct ConversationIndex {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    rows: HashMap<Uuid, Arc<ConversationRow>>,
    /// By agent and name.
    names: BTreeMap<(Uuid, String), Uuid>,
    /// By agent and origin.
    origins: HashMap<(Uuid, String), Uuid>,
    /// By agent.
    selected: HashMap<Uuid, Uuid>,
}

impl Inner {
    fn deselect(&mut self, agent: Uuid) {
        let Some(id) = self.selected.remove(&agent) else { return };
        if let Some(row) = self.rows.get_mut(&id) {
            *row = Arc::new(ConversationRow { is_selected: false, ..(**row).clone() });
        }
    }

    fn forget(&mut self, id: Uuid) {
        let Some(old) = self.rows.remove(&id) else { return };
        let agent = old.key.agent;
        self.names.remove(&(agent, old.name.clone()));
        if let Some(origin) = &old.origin {
            self.origins.remove(&(agent, origin.clone()));
        }
        if self.selected.get(&agent) == Some(&id) {
            self.selected.remove(&agent);
        }
    }
}

impl ConversationIndex {
    /// Inserts a conversation, or replaces the one with its id. If it is selected, no other one of its agent is any more.
    pub fn insert(&self, row: ConversationRow) {
        let mut inner = self.inner.write();
        let ConversationKey { agent, id } = row.key;
        inner.forget(id);
        if row.is_selected {
            inner.deselect(agent);
        }
        inner.names.insert((agent, row.name.clone()), id);
        if let Some(origin) = &row.origin {
            inner.origins.insert((agent, origin.clone()), id);
        }
        if row.is_selected {
            inner.selected.insert(agent, id);
        }
        inner.rows.insert(id, Arc::new(row));
    }

    /// Returns the ids of an agent's conversations, open and closed.
    #[must_use]
    pub fn ids_of_agent(&self, agent: Uuid) -> Vec<Uuid> {
        let inner = self.inner.read();
        let of_agent = inner.names.range((agent, String::new())..).take_while(|((of, _), _)| *of == agent);
        of_agent.map(|(_, id)| *id).collect()
    }

    /// Forgets the conversations of an agent that another daemon has now.
    pub fn forget_agent(&self, agent: Uuid) {
        let ids = self.ids_of_agent(agent);
        let mut inner = self.inner.write();
        ids.into_iter().for_each(|id| inner.forget(id));
    }

    /// Moves what the index holds of conversations to other memory. It was allocated between parts of their contexts, and
    /// once those are freed, it alone keeps their pages from being returned to the system.
    pub fn relocate(&self, keys: &[ConversationKey]) {
        let mut inner = self.inner.write();
        // All copies are made before anything is freed. Otherwise each would take the place of the one before.
        let all_names = (keys.len() * 2 >= inner.names.len()).then(|| inner.names.clone());
        let copy = |row: &Arc<ConversationRow>| {
            let name = all_names.is_none().then(|| (row.key.agent, row.name.clone()));
            (name, Arc::new((**row).clone()))
        };
        let copies: Vec<_> = keys.iter().filter_map(|key| inner.rows.get(&key.id)).map(copy).collect();
        let mut replaced = Vec::with_capacity(copies.len());
        let _old_names = all_names.map(|names| std::mem::replace(&mut inner.names, names));
        for (name, row) in copies {
            let old_name = name.map(|name| (inner.names.remove_entry(&name), inner.names.insert(name, row.key.id)));
            replaced.push((old_name, inner.rows.insert(row.key.id, row)));
        }
    }

    /// Makes `main` the selected conversation of an agent.
    pub fn deselect(&self, agent: Uuid) {
        self.inner.write().deselect(agent);
    }

    /// Returns a conversation; `None` for `main`.
    #[must_use]
    pub fn get(&self, key: ConversationKey) -> Option<Arc<ConversationRow>> {
        self.inner.read().rows.get(&key.id).cloned()
    }

    /// Returns the name of a conversation; `None` for `main`.
    #[must_use]
    pub fn name(&self, key: ConversationKey) -> Option<String> {
        if key.is_main() { None } else { self.get(key).map(|row| row.name.clone()) }
    }

    /// Returns the id and name of a conversation as a session notes them; `None` for `main`.
    #[must_use]
    pub fn reference(&self, key: ConversationKey) -> Option<ConversationRef> {
        self.name(key).map(|name| ConversationRef { id: key.id, name })
    }

    /// Returns the agent's conversation with this name.
    #[must_use]
    pub fn by_name(&self, agent: Uuid, name: &str) -> Option<Arc<ConversationRow>> {
        let inner = self.inner.read();
        inner.names.get(&(agent, name.to_owned())).and_then(|id| inner.rows.get(id)).cloned()
    }

    /// Returns the agent's conversation that `origin` made.
    #[must_use]
    pub fn by_origin(&self, agent: Uuid, origin: &str) -> Option<Arc<ConversationRow>> {
        let inner = self.inner.read();
        inner.origins.get(&(agent, origin.to_owned())).and_then(|id| inner.rows.get(id)).cloned()
    }

    /// Returns the selected conversation of an agent.
    #[must_use]
    pub fn selected(&self, agent: Uuid) -> ConversationKey {
        let id = self.inner.read().selected.get(&agent).copied();
        ConversationKey::from_stored(agent, id)
    }

    /// Returns true if the agent has a conversation beside `main`, open or closed.
    #[must_use]
    pub fn has_any(&self, agent: Uuid) -> bool {
        let inner = self.inner.read();
        inner.names.range((agent, String::new())..).next().is_some_and(|((of, _), _)| *of == agent)
    }

    /// Returns the names and titles in lowercase letters of the conversations in which one of `words` occurs, by id; of all
    /// agents without `agent`.
    #[must_use]
    pub fn texts_with_words(&self, agent: Option<Uuid>, words: &[String]) -> HashMap<Uuid, String> {
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let inner = self.inner.read();
        let of_agent = inner.rows.values().filter(|row| agent.is_none_or(|agent| row.key.agent == agent));
        let texts = of_agent.map(|row| {
            let title = row.title.as_deref().unwrap_or_default();
            (row.key.id, format!("{}\n{title}", row.name).to_lowercase())
        });
        texts.filter(|(_, text)| words.iter().any(|word| text.contains(&**word))).collect()
    }

    /// Returns the conversations of an agent, sorted by name.
    #[must_use]
    pub fn of_agent(&self, agent: Uuid) -> Vec<Arc<ConversationRow>> {
        let inner = self.inner.read();
        let names = inner.names.range((agent, String::new())..).take_while(|((of, _), _)| *of == agent);
        names.filter_map(|(_, id)| inner.rows.get(id)).cloned().collect()
    }
}
