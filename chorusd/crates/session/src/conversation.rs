//! The key of a conversation: the agent and which of its conversations.

use uuid::Uuid;

/// Name of the conversation that every agent has.
pub const MAIN_CONVERSATION: &str = "main";

/// A conversation of an agent. The id of the conversation `main` is the agent's; keys sort by agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConversationKey {
    pub agent: Uuid,
    pub id: Uuid,
}

impl ConversationKey {
    /// Returns the key of the agent's conversation `main`.
    #[must_use]
    pub const fn main(agent: Uuid) -> Self {
        Self { agent, id: agent }
    }

    /// Returns the key of the conversation with this id, which is `None` for `main`, as it is stored.
    #[must_use]
    pub fn from_stored(agent: Uuid, id: Option<Uuid>) -> Self {
        Self { agent, id: id.unwrap_or(agent) }
    }

    /// Returns the id as it is stored: `None` for `main`.
    #[must_use]
    pub fn stored_id(self) -> Option<Uuid> {
        (!self.is_main()).then_some(self.id)
    }

    /// Returns true for the conversation `main`.
    #[must_use]
    pub fn is_main(self) -> bool {
        self.agent == self.id
    }
}
