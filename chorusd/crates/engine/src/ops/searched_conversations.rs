//! Whose conversations a search or a list is about, as a request says it.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use uuid::Uuid;

use super::agent::AgentResolver;
use super::conversations::{ConversationKey, find};
use super::session::SessionReader;
use crate::agent::agent_index::AgentEntry;

/// The parts of a request that say it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConversationsRequest<'a> {
    pub(super) agent: Option<&'a str>,
    /// The agent was not named by the user, but taken from the surroundings.
    pub(super) own: bool,
    pub(super) conversation: Option<&'a str>,
    pub(super) all_agents: bool,
    /// Words say which conversation is meant, so it need not be known whose it is.
    pub(super) has_words: bool,
}

/// The conversations that are searched or listed.
#[derive(Debug)]
pub(super) struct SearchedConversations {
    /// `None`: those of all agents.
    pub(super) agent: Option<Arc<AgentEntry>>,
    /// Only this one of the agent.
    pub(super) conversation: Option<ConversationKey>,
    /// Agents with imported conversations, which are searched as well as those of the agent.
    pub(super) also: Vec<Uuid>,
}

impl SearchedConversations {
    /// # Errors
    /// `agent_not_found`, `no_agent`, `conversation_not_found`; `invalid_params` for a conversation of all agents.
    pub(super) async fn resolve(
        agents: &AgentResolver,
        sessions: &SessionReader,
        request: ConversationsRequest<'_>,
    ) -> Result<Self> {
        let agent = match request.all_agents {
            true => None,
            false => match agents.resolve_for_sessions(request.agent).await {
                Err(error) if error.kind == ErrorKind::NoAgent && request.has_words => None,
                agent => Some(agent?),
            },
        };
        let conversation = match (&agent, request.conversation) {
            (_, None) => None,
            (Some(agent), Some(name)) => Some(find(&agents.index, agent, Some(name))?),
            (None, Some(_)) => {
                return Err(Error::invalid("`conversation` cannot be combined with `all_agents`")
                    .hint("name the agent of the conversation"));
            }
        };
        let is_named = request.agent.is_some() && !request.own;
        let also = match is_named || conversation.is_some() {
            true => Vec::new(),
            false => sessions.imported_by_others(agent.as_ref().map(|agent| agent.settings.id)),
        };
        Ok(Self { agent, conversation, also })
    }
}
