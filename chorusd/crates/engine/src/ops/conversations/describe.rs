//! Describes conversations to clients.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_journal::ConversationRow;
use chorus_proto::methods::conversations::Conversation;
use chorus_proto::{ContextInfo, SessionRef};
use chorus_session::conversation::{ConversationKey, MAIN_CONVERSATION};

use super::worktrees::describe_worktree;
use crate::agent::agent_index::AgentEntry;
use crate::agent::registry::Registry;

/// A conversation and what is known about it.
#[derive(Debug, Clone)]
pub(super) struct Described {
    pub key: ConversationKey,
    /// `None` for `main`.
    pub row: Option<Arc<ConversationRow>>,
}

impl Described {
    /// Describes the conversation of `agent`, with whose creation `main` began.
    pub(super) fn describe(
        &self,
        registry: &Registry,
        agent: &AgentEntry,
        context: Option<ContextInfo>,
        last_session: Option<SessionRef>,
    ) -> Conversation {
        let (key, row) = (self.key, self.row.as_deref());
        let given = row.and_then(|row| row.title.clone());
        let of_session =
            || last_session.as_ref().and_then(|last| last.description.clone().or_else(|| last.summary.clone()));
        Conversation {
            id: key.id,
            name: row.map_or_else(|| MAIN_CONVERSATION.to_owned(), |row| row.name.clone()),
            title: given.or_else(of_session),
            origin: row.and_then(|row| row.origin.clone()),
            created_at: row.map_or(agent.created_at, |row| row.created_at),
            // A message that came in the instant of closing has opened it again.
            closed_at: row
                .and_then(|row| row.closed_at)
                .filter(|_| context.as_ref().is_none_or(|context| context.messages == 0)),
            selected: registry.conversations().selected(key.agent) == key,
            turn: registry.running.status(key, registry.ticks()),
            context,
            last_session,
            attached: registry.attached.list(key),
            worktree: row.and_then(|row| describe_worktree(agent.settings.files_dir(), row)),
        }
    }
}

/// Describes the conversations of `agent` that have a live context in `infos`, without `main`, by name.
#[must_use]
pub fn describe_live(
    registry: &Registry,
    agent: &AgentEntry,
    infos: &HashMap<ConversationKey, ContextInfo>,
) -> Vec<Conversation> {
    let live = registry.live_conversations(Some(agent.settings.id)).into_iter();
    let mut live: Vec<_> =
        live.filter_map(|key| Some((infos.get(&key)?.clone(), registry.conversations().get(key)?))).collect();
    live.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
    live.into_iter()
        .map(|(info, row)| {
            let described = Described { key: row.key, row: Some(row) };
            described.describe(registry, agent, Some(info), None)
        })
        .collect()
}
