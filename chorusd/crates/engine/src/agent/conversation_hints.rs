//! Names the conversation in the commands of hints, because without it they would act on another one.

use chorus_base::error::Error;
use chorus_proto::command_text::add_target;
use chorus_session::conversation::{ConversationKey, MAIN_CONVERSATION};

use super::agent_index::AgentIndex;

impl AgentIndex {
    /// Has the commands in the hint of an error in a conversation name it.
    #[must_use]
    pub fn name_in_hint(&self, conversation: ConversationKey, failure: Error) -> Error {
        let hint = failure.hint.as_deref().map(|hint| self.name_in_commands(conversation, hint));
        Error { hint, ..failure }
    }

    /// Has the commands in a text about a conversation name it, and its agent if it is not the default one. Nothing is
    /// added if the agent has only `main`.
    #[must_use]
    pub fn name_in_commands(&self, conversation: ConversationKey, text: &str) -> String {
        let name = match self.conversations.name(conversation) {
            Some(name) => name,
            None if self.conversations.has_any(conversation.agent) => MAIN_CONVERSATION.to_owned(),
            None => return text.to_owned(),
        };
        let is_default = self.default_agent().is_some_and(|entry| entry.settings.id == conversation.agent);
        let agent = self.by_id(conversation.agent).filter(|_| !is_default);
        add_target(text, agent.as_ref().map(|entry| &*entry.settings.name), Some(&name))
    }
}
