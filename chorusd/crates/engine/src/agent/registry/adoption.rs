//! Agents that come to this daemon from another one of a cluster, or go to one.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Elsewhere, Error};
use chorus_journal::ContextRow;
use chorus_proto::methods::conversations::ContextPosition;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::ContextNo;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Inner, Registry};
use crate::agent::command;
use crate::search::Novelty;

impl Registry {
    /// Returns whether this daemon has taken the agent on.
    #[must_use]
    pub fn is_adopted(&self, agent: Uuid) -> bool {
        self.inner.lock().adopted.contains_key(&agent)
    }

    /// Takes an agent on, with its live contexts: they have timers from now on, by `idle_timeout`, which nobody else may know yet. A
    /// turn that was running in one is closed as interrupted.
    pub fn adopt(self: &Arc<Self>, agent: Uuid, heads: Vec<ContextRow>, idle_timeout: Option<Duration>) {
        let open: Vec<_> = heads.iter().filter(|head| head.turn.is_some()).map(|head| head.conversation).collect();
        {
            let mut inner = self.inner.lock();
            self.forget_contexts(&mut inner, agent);
            inner.moved.remove(&agent);
            if let Some(former) = inner.adopted.insert(agent, CancellationToken::new()) {
                former.cancel();
            }
            for head in heads {
                self.live_changes.note(head.conversation, Novelty::New);
                let deadline = idle_timeout.and_then(|timeout| self.deadline_within(&head, timeout));
                self.idle_timers.set(head.conversation, deadline.map(|deadline| deadline.due));
                inner.live.insert(head);
            }
        }
        for conversation in open {
            let registry = self.clone();
            self.spawn(async move {
                if let Err(failure) = registry.ask(conversation, command::wake()).await {
                    tracing::warn!(agent = %conversation.agent, %failure, "cannot close an interrupted turn");
                }
            });
        }
    }

    /// Continues the order of file writes behind what other daemons have written.
    pub fn raise_file_position(&self, position: u64) {
        self.tools.file_versions.raise_position(position);
    }

    /// Ends everything that this daemon does for an agent that another one has taken over. Nothing is written.
    pub fn abandon(&self, agent: Uuid) {
        let mut inner = self.inner.lock();
        let lost = inner.adopted.remove(&agent);
        self.attached.leave(agent, |conversation| match inner.live.get(conversation) {
            Some(head) => context_position(head.context, head.totals.messages),
            None => context_position(ContextNo(0), 0),
        });
        self.forget_contexts(&mut inner, agent);
        drop(inner);
        if let Some(lost) = lost {
            lost.cancel();
        }
    }

    /// Ends all turns that run, with the processes of their tools, since the store can no longer be reached.
    pub async fn end_turns_without_store(self: &Arc<Self>) {
        let active: Vec<ConversationKey> = self.inner.lock().actors.keys().copied().collect();
        let cancelled =
            active.into_iter().map(|conversation| self.ask(conversation, command::end_turn_without_store()));
        futures_util::future::join_all(cancelled).await;
    }

    /// As [`Registry::abandon`], for an agent that was moved: requests that wait for it are sent after it.
    pub fn abandon_to(&self, agent: Uuid, there: Elsewhere) {
        self.inner.lock().moved.insert(agent, there);
        self.abandon(agent);
    }

    /// Returns the daemon to which an agent was moved.
    pub(in crate::agent) fn moved_to(&self, agent: Uuid) -> Option<Elsewhere> {
        self.inner.lock().moved.get(&agent).cloned()
    }

    /// Creates the error for a request that met an agent when it was moved. Nothing was done.
    pub(in crate::agent) fn moved_error(&self, agent: Uuid, there: Elsewhere) -> Error {
        let entry = self.agents.by_id(agent);
        Error::elsewhere(entry.as_ref().map_or("the agent", |entry| &entry.settings.name), there)
    }

    /// Returns the conversations of an agent that have actors, without a look at those of others.
    pub(in crate::agent) fn with_actors(&self, inner: &Inner, agent: Uuid) -> Vec<ConversationKey> {
        let others = self.agents.conversations.ids_of_agent(agent);
        let others = others.into_iter().map(|id| ConversationKey { agent, id });
        let live = inner.live.of_agent(agent).map(|head| head.conversation);
        let mut all: Vec<_> = std::iter::once(ConversationKey::main(agent)).chain(others).chain(live).collect();
        all.retain(|key| inner.actors.contains_key(key));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Forgets the actors and the contexts of an agent.
    fn forget_contexts(&self, inner: &mut Inner, agent: Uuid) {
        let with_actors = self.with_actors(inner, agent);
        let live = inner.live.of_agent(agent).map(|head| head.conversation);
        let mut all: Vec<ConversationKey> = with_actors.into_iter().chain(live).collect();
        all.sort_unstable();
        all.dedup();
        for conversation in all {
            inner.actors.remove(&conversation);
            inner.live.remove(conversation);
            inner.prompt_sizes.remove(&conversation);
            self.idle_timers.set(conversation, None);
            self.eviction_timers.set(conversation, None);
            self.running.set(conversation, None);
            self.attached.forget_turn(conversation);
            self.live_changes.note(conversation, Novelty::Changed);
        }
    }
}

fn context_position(context: ContextNo, messages: u64) -> ContextPosition {
    ContextPosition { context: u64::try_from(context.0).unwrap_or_default(), messages }
}
