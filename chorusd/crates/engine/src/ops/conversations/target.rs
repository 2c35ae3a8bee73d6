//! Finds the conversation that a request names.

use std::sync::Arc;

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_session::conversation::{ConversationKey, MAIN_CONVERSATION};
use uuid::Uuid;

use super::write_target::StartingGuard;
use crate::agent::agent_index::{AgentEntry, AgentIndex};
use crate::ops::agent::AgentResolver;

/// Stands in a request for the selected conversation, instead of a name.
pub const SELECTED: &str = "@";

/// An agent and one of its conversations, as a request names them.
#[derive(Debug)]
pub struct ConversationTarget {
    pub agent: Arc<AgentEntry>,
    pub key: ConversationKey,
    /// It was closed, and this request opened it.
    pub(super) was_reopened: bool,
    /// Held while a context may be started in it.
    pub(super) _starting: Option<StartingGuard>,
}

impl ConversationTarget {
    /// Returns a conversation of an agent.
    #[must_use]
    pub fn new(agent: Arc<AgentEntry>, key: ConversationKey) -> Self {
        Self { agent, key, was_reopened: false, _starting: None }
    }

    /// Returns the conversation `main` of an agent.
    #[must_use]
    pub fn main(agent: Arc<AgentEntry>) -> Self {
        let key = ConversationKey::main(agent.settings.id);
        Self::new(agent, key)
    }
}

impl AgentResolver {
    /// Returns the conversation that a request names: `main` if it names none, the selected one for `@`.
    ///
    /// # Errors
    /// As [`AgentResolver::resolve`]; `conversation_not_found` with the nearest name.
    pub async fn conversation(&self, agent: Option<&str>, conversation: Option<&str>) -> Result<ConversationTarget> {
        let agent = self.resolve(agent).await?;
        let key = find(&self.index, &agent, conversation)?;
        Ok(ConversationTarget::new(agent, key))
    }

    /// Like [`AgentResolver::conversation`], for requests that only concern saved sessions.
    pub async fn conversation_for_sessions(
        &self,
        agent: Option<&str>,
        conversation: Option<&str>,
    ) -> Result<ConversationTarget> {
        let agent = self.resolve_for_sessions(agent).await?;
        let key = find(&self.index, &agent, conversation)?;
        Ok(ConversationTarget::new(agent, key))
    }
}

/// Returns the key of the agent's conversation that `named` means, a name, an id or `@`.
///
/// # Errors
/// `conversation_not_found`.
pub fn find(agents: &AgentIndex, agent: &AgentEntry, named: Option<&str>) -> Result<ConversationKey> {
    let (id, conversations) = (agent.settings.id, &agents.conversations);
    let Some(name) = named else { return Ok(ConversationKey::main(id)) };
    match name {
        MAIN_CONVERSATION => return Ok(ConversationKey::main(id)),
        SELECTED => return Ok(conversations.selected(id)),
        _ => {}
    }
    // Ids go before names: older homes may have names that look like ids.
    let by_id = Uuid::try_parse(name).ok().map(|conversation| ConversationKey { agent: id, id: conversation });
    if let Some(key) = by_id.filter(|key| key.is_main() || conversations.get(*key).is_some_and(|row| row.key == *key)) {
        return Ok(key);
    }
    if let Some(row) = conversations.by_name(id, name) {
        return Ok(row.key);
    }
    Err(unknown_conversation_error(agents, agent, name))
}

fn unknown_conversation_error(agents: &AgentIndex, agent: &AgentEntry, name: &str) -> Error {
    let shown: String = name.chars().take(80).collect();
    let agent_name = &agent.settings.name;
    let failure =
        Error::new(ErrorKind::ConversationNotFound, format!("agent {agent_name} has no conversation {shown:?}"));
    let rows = agents.conversations.of_agent(agent.settings.id);
    let names = rows.iter().map(|row| row.name.as_str()).chain([MAIN_CONVERSATION]);
    match closest_match(name, names) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure.hint(format!("list them: chorusctl --agent {agent_name} conversations")),
    }
}
