//! Private conversations: their sessions are offered in the conversation itself, not to the other people who talk to the
//! agent.

use std::collections::HashSet;

use chorus_journal::ConversationRow;
use chorus_proto::SessionHeader;
use chorus_session::conversation::ConversationKey;
use uuid::Uuid;

use crate::agent::conversation_index::ConversationIndex;

/// Prefix of the origins of conversations in direct messages of Discord; the id of the person follows.
pub const DIRECT_ORIGIN: &str = "discord-dm:";

/// Prefix of the origins of conversations in private threads of Discord; the id of the thread follows.
pub const PRIVATE_THREAD_ORIGIN: &str = "discord-private:";

/// Prefix of the origins of conversations that damage left without one, so that nobody knows who may see them; their id follows.
pub const RECOVERED_ORIGIN: &str = "recovered:";

/// The sessions of an agent that are offered in one of its conversations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionScope {
    /// Conversations whose sessions are not offered.
    hidden: HashSet<Uuid>,
    /// Only sessions of this conversation are offered.
    only: Option<ConversationKey>,
}

impl SessionScope {
    /// Returns what may be offered in the conversation `viewer`. In direct messages that is the conversation itself, because
    /// the person may not see the channels of the agent; elsewhere all but other private conversations.
    #[must_use]
    pub fn of(conversations: &ConversationIndex, viewer: ConversationKey) -> Self {
        let is_direct = conversations.get(viewer).is_some_and(|row| has_origin(&row, DIRECT_ORIGIN));
        let others =
            conversations.of_agent(viewer.agent).into_iter().filter(|row| row.key != viewer && is_private(row));
        Self { hidden: others.map(|row| row.key.id).collect(), only: is_direct.then_some(viewer) }
    }

    /// Returns whether a conversation of the agent is offered.
    #[must_use]
    pub fn contains(&self, conversation: ConversationKey) -> bool {
        self.only.is_none_or(|only| only == conversation) && !self.hidden.contains(&conversation.id)
    }

    /// Returns whether a session of the agent is offered.
    #[must_use]
    pub fn contains_session(&self, header: &SessionHeader) -> bool {
        let of = header.conversation.as_ref().map(|conversation| conversation.id);
        self.contains(ConversationKey::from_stored(header.agent_id, of))
    }

    /// Returns the conversations whose sessions are not offered.
    #[must_use]
    pub fn hidden(&self) -> Vec<Uuid> {
        self.hidden.iter().copied().collect()
    }

    /// Returns the only conversation whose sessions are offered; `None` if there are several.
    #[must_use]
    pub fn only(&self) -> Option<ConversationKey> {
        self.only
    }
}

/// Returns whether the sessions of a conversation are offered in it only.
#[must_use]
pub fn is_private(row: &ConversationRow) -> bool {
    [DIRECT_ORIGIN, PRIVATE_THREAD_ORIGIN, RECOVERED_ORIGIN].iter().any(|prefix| has_origin(row, prefix))
}

fn has_origin(row: &ConversationRow, prefix: &str) -> bool {
    row.origin.as_ref().is_some_and(|origin| origin.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_private_conversation_is_offered_in_itself_only() {
        let agent = Uuid::from_u128(1);
        let index = ConversationIndex::default();
        let key = |number| ConversationKey { agent, id: Uuid::from_u128(number) };
        for (number, origin) in [(2, "discord:7"), (3, "discord-private:8"), (4, "discord-dm:9"), (5, "discord-dm:10")]
        {
            index.insert(ConversationRow {
                key: key(number),
                name: format!("c{number}"),
                origin: Some(origin.to_owned()),
                title: None,
                created_at: Timestamp::UNIX_EPOCH,
                closed_at: None,
                is_selected: false,
                worktree: None,
            });
        }
        let main = ConversationKey::main(agent);
        let all = [main, key(2), key(3), key(4), key(5)];
        let offered = |viewer| {
            let scope = SessionScope::of(&index, viewer);
            all.into_iter().filter(|one| scope.contains(*one)).collect::<Vec<_>>()
        };
        assert_eq!(offered(main), [main, key(2)]);
        assert_eq!(offered(key(2)), [main, key(2)]);
        assert_eq!(offered(key(3)), [main, key(2), key(3)]);
        assert_eq!(offered(key(4)), [key(4)]);
    }
}
