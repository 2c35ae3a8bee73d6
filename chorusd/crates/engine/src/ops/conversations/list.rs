//! The operation `conversations.list`.

use chorus_base::error::{Error, Result};
use chorus_proto::methods::conversations::{Conversation, ListParams, ListResult};
use chorus_session::conversation::ConversationKey;

use super::describe::Described;
use crate::agent::agent_index::AgentEntry;
use crate::ops::agent::{AgentDescriber, AgentResolver};

/// The limit on conversations in a page, far below what fits in a frame.
const MAX_PAGE: u64 = 1000;

/// Lists an agent's conversations: `main` first, then the others by name.
///
/// # Errors
/// `agent_not_found`, `invalid_params`.
pub async fn list(agents: &AgentResolver, describer: &AgentDescriber, params: ListParams) -> Result<ListResult> {
    let limit = params.limit.unwrap_or(MAX_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Error::invalid(format!("`limit` must be 1 to {MAX_PAGE}")).hint("use `offset` for more"));
    }
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let id = agent.settings.id;
    let mut all = vec![Described { key: ConversationKey::main(id), row: None }];
    let rows = agents.index.conversations.of_agent(id).into_iter();
    all.extend(rows.map(|row| Described { key: row.key, row: Some(row) }));
    all.retain(|one| {
        let is_closed = one.row.as_ref().is_some_and(|row| row.closed_at.is_some());
        params.all || !is_closed || describer.registry.context_info(one.key).is_some()
    });
    let total = all.len() as u64;
    let offset = params.offset.unwrap_or(0).min(total);
    let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let page: Vec<_> = all.into_iter().skip(at(offset)).take(at(limit)).collect();
    let end = offset + page.len() as u64;
    Ok(ListResult {
        agent_name: agent.settings.name.clone(),
        conversations: describer.describe_conversations(&agent, page).await?,
        total,
        next: (end < total).then_some(end),
    })
}

impl AgentDescriber {
    /// Describes conversations of an agent, each with its live context and its newest session.
    pub(super) async fn describe_conversations(
        &self,
        agent: &AgentEntry,
        all: Vec<Described>,
    ) -> Result<Vec<Conversation>> {
        let keys = all.iter().map(|one| one.key).collect();
        let last = self.newest_sessions(keys).await?;
        let describe = |(one, last): (Described, _)| {
            one.describe(&self.registry, agent, self.registry.context_info(one.key), last)
        };
        Ok(all.into_iter().zip(last).map(describe).collect())
    }

    /// Describes one conversation of an agent.
    pub(super) async fn describe_conversation(&self, agent: &AgentEntry, key: ConversationKey) -> Result<Conversation> {
        let row = self.registry.conversations().get(key);
        let mut described = self.describe_conversations(agent, vec![Described { key, row }]).await?;
        described.pop().ok_or_else(|| Error::internal("the description of a conversation was aborted"))
    }
}
