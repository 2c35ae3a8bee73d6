//! The heads of live contexts, by conversation, and which ones each agent has.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use chorus_journal::ContextRow;
use chorus_session::conversation::ConversationKey;
use uuid::Uuid;

/// The heads of the live contexts. Those of one agent are found without a look at those of others.
#[derive(Debug, Default)]
pub(super) struct LiveHeads {
    /// Boxed: a map has up to twice as much room as it needs.
    heads: HashMap<ConversationKey, Box<ContextRow>>,
    /// The conversations other than `main`, by agent.
    others: HashMap<Uuid, HashSet<Uuid>>,
}

impl LiveHeads {
    pub(super) fn get(&self, conversation: ConversationKey) -> Option<&ContextRow> {
        self.heads.get(&conversation).map(Box::as_ref)
    }

    /// Returns all heads.
    pub(super) fn values(&self) -> impl Iterator<Item = &ContextRow> {
        self.heads.values().map(Box::as_ref)
    }

    /// Returns the heads of an agent, that of `main` first.
    pub(super) fn of_agent(&self, agent: Uuid) -> impl Iterator<Item = &ContextRow> {
        let others = self.others.get(&agent).into_iter().flatten().map(move |id| ConversationKey { agent, id: *id });
        std::iter::once(ConversationKey::main(agent)).chain(others).filter_map(|key| self.get(key))
    }

    pub(super) fn insert(&mut self, head: ContextRow) {
        let key = head.conversation;
        if !key.is_main() {
            self.others.entry(key.agent).or_default().insert(key.id);
        }
        match self.heads.entry(key) {
            Entry::Occupied(mut known) => **known.get_mut() = head,
            Entry::Vacant(free) => drop(free.insert(Box::new(head))),
        }
    }

    /// Moves the heads of contexts that have just been evicted; see
    /// [`ConversationIndex::relocate`](crate::agent::conversation_index::ConversationIndex::relocate).
    pub(super) fn relocate(&mut self, keys: &[ConversationKey]) {
        // All copies are made before anything is freed.
        let copies: Vec<_> = keys.iter().filter_map(|key| Some((key, self.heads.get(key)?.clone()))).collect();
        let _old: Vec<_> = copies.into_iter().map(|(key, head)| self.heads.insert(*key, head)).collect();
    }

    pub(super) fn remove(&mut self, key: ConversationKey) {
        self.heads.remove(&key);
        if let Some(others) = self.others.get_mut(&key.agent) {
            others.remove(&key.id);
            if others.is_empty() {
                self.others.remove(&key.agent);
            }
        }
    }
}

impl FromIterator<ContextRow> for LiveHeads {
    fn from_iter<I: IntoIterator<Item = ContextRow>>(heads: I) -> Self {
        let mut all = Self::default();
        heads.into_iter().for_each(|head| all.insert(head));
        all
    }
}
