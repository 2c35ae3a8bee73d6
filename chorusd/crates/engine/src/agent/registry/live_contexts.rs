//! The numbers of the live contexts, known without asking their actors.

use std::collections::{HashMap, HashSet};

use chorus_agent_core::window::WindowBudget;
use chorus_journal::ContextRow;
use chorus_proto::ContextInfo;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::{ContextNo, StoredMessage};
use jiff::Timestamp;
use uuid::Uuid;

use super::Registry;
use crate::agent::context_loader;
use crate::agent::idle_expiry::shrink_if_sparse;
use crate::agent::prompt_size::{self, ConversationSize};

/// The part of a live context that the search index compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveHead {
    pub context: ContextNo,
    pub messages: u64,
    pub last_activity_at: Timestamp,
}

impl LiveHead {
    fn of(row: &ContextRow) -> Self {
        Self { context: row.context, messages: row.totals.messages, last_activity_at: row.last_activity_at }
    }
}

impl Registry {
    /// Returns the head of a conversation's live context.
    #[must_use]
    pub fn live_head(&self, conversation: ConversationKey) -> Option<LiveHead> {
        self.inner.lock().live.get(conversation).map(LiveHead::of)
    }

    /// Returns the heads of all live contexts.
    #[must_use]
    pub fn live_heads(&self) -> Vec<(ConversationKey, LiveHead)> {
        self.inner.lock().live.values().map(|row| (row.conversation, LiveHead::of(row))).collect()
    }

    /// Reads the messages of a live context from the journal; it stays out of memory. `None` if it is in memory, or changes in the
    /// meantime, or cannot be read: then its actor has to be asked.
    pub async fn read_unloaded(&self, conversation: ConversationKey) -> Option<Vec<StoredMessage>> {
        let head = {
            let inner = self.inner.lock();
            let is_loaded = inner.actors.contains_key(&conversation);
            inner.live.get(conversation).filter(|_| !is_loaded).cloned()?
        };
        // The actor reports what is wrong.
        context_loader::read_messages(&self.store, &self.home, &head).await.ok()
    }

    /// Returns the numbers of a conversation's live context.
    #[must_use]
    pub fn context_info(&self, conversation: ConversationKey) -> Option<ContextInfo> {
        self.inner.lock().live.get(conversation).map(to_context_info)
    }

    /// Returns true unless it is certain that a conversation has no context. The first messages of a context are announced a
    /// moment before its numbers are known here; who asks for them then must ask the actor.
    #[must_use]
    pub fn may_have_context(&self, conversation: ConversationKey) -> bool {
        let inner = self.inner.lock();
        inner.live.get(conversation).is_some() || inner.actors.contains_key(&conversation)
    }

    /// Moves what is kept of evicted contexts to other memory, and returns the room of their actors.
    pub(in crate::agent) fn relocate(&self, evicted: &[ConversationKey]) {
        let mut inner = self.inner.lock();
        inner.live.relocate(evicted);
        shrink_if_sparse(&mut inner.actors);
    }

    /// Returns the numbers of all live contexts.
    #[must_use]
    pub fn context_infos(&self) -> HashMap<ConversationKey, ContextInfo> {
        self.inner.lock().live.values().map(|head| (head.conversation, to_context_info(head))).collect()
    }

    /// Returns the numbers of an agent's live contexts.
    #[must_use]
    pub fn context_infos_of(&self, agent: Uuid) -> HashMap<ConversationKey, ContextInfo> {
        let inner = self.inner.lock();
        inner.live.of_agent(agent).map(|head| (head.conversation, to_context_info(head))).collect()
    }

    /// Returns for each conversation the estimated tokens of it in its next request, or `None` if it has no context.
    #[must_use]
    pub fn prompt_tokens(
        &self,
        conversations: impl Iterator<Item = (ConversationKey, WindowBudget)>,
    ) -> Vec<Option<u64>> {
        let inner = self.inner.lock();
        let tokens = |(conversation, budget): (ConversationKey, WindowBudget)| {
            let head = inner.live.get(conversation)?;
            let measured = inner.prompt_sizes.get(&conversation).and_then(|shown| shown.tokens(budget));
            Some(measured.unwrap_or_else(|| prompt_size::guess_tokens(head.totals, budget)))
        };
        conversations.map(tokens).collect()
    }

    /// Returns the measured size of a conversation's next prompt, if its context was loaded since the start.
    #[must_use]
    pub fn prompt_size(&self, conversation: ConversationKey) -> Option<ConversationSize> {
        self.inner.lock().prompt_sizes.get(&conversation).copied()
    }

    /// Returns true if a conversation's context is in memory.
    #[must_use]
    pub fn is_loaded(&self, conversation: ConversationKey) -> bool {
        let inner = self.inner.lock();
        inner.actors.contains_key(&conversation) && inner.prompt_sizes.contains_key(&conversation)
    }

    /// Returns the conversations whose context has messages that no session holds.
    #[must_use]
    pub fn unsaved_conversations(&self) -> Vec<ConversationKey> {
        let unsaved = |head: &ContextRow| head.totals.messages > head.saved_messages;
        self.inner.lock().live.values().filter(|head| unsaved(head)).map(|head| head.conversation).collect()
    }

    /// Returns the conversations that have a live context, of all agents or of one, the least recently active first.
    #[must_use]
    pub fn live_conversations(&self, agent: Option<Uuid>) -> Vec<ConversationKey> {
        let inner = self.inner.lock();
        let position = |head: &ContextRow| (head.last_activity_at, head.conversation);
        let mut live: Vec<_> = match agent {
            Some(agent) => inner.live.of_agent(agent).map(position).collect(),
            None => inner.live.values().map(position).collect(),
        };
        live.sort_unstable();
        live.into_iter().map(|(_, conversation)| conversation).collect()
    }

    /// Returns the session that the live context of a conversation was saved as, else the one that it was restored from.
    pub fn live_session(&self, conversation: ConversationKey) -> Option<Uuid> {
        let inner = self.inner.lock();
        let head = inner.live.get(conversation)?;
        head.saved_session.or(head.base_session)
    }

    /// Returns the conversations whose context refers to a matching session in the journal or is saved in one, each with
    /// that session.
    #[must_use]
    pub fn conversations_referring_to(&self, session: impl Fn(Uuid) -> bool) -> Vec<(ConversationKey, Uuid)> {
        let inner = self.inner.lock();
        inner
            .live
            .values()
            .flat_map(|head| {
                let saved = head.saved_session.filter(|id| Some(*id) != head.base_session);
                head.base_session.into_iter().chain(saved).map(|id| (head.conversation, id))
            })
            .filter(|(_, id)| session(*id))
            .collect()
    }

    /// Returns the sessions that live contexts were saved as, restored from or continue from.
    #[must_use]
    pub fn sessions_in_use(&self) -> HashSet<Uuid> {
        let inner = self.inner.lock();
        let of = |head: &ContextRow| [head.base_session, head.saved_session, head.parent];
        inner.live.values().flat_map(of).flatten().collect()
    }
}

fn to_context_info(head: &ContextRow) -> ContextInfo {
    ContextInfo {
        messages: head.totals.messages,
        token_estimate: head.totals.tokens(),
        started_at: head.started_at,
        last_activity_at: head.last_activity_at,
        idle_deadline_at: head.idle_deadline_at,
        parent_id: head.parent,
        unsaved: head.totals.messages.saturating_sub(head.saved_messages),
        restoration_tokens: head.restoration,
        meter: None,
    }
}
