//! The operation `conversations.use`.

use chorus_base::error::Result;
use chorus_journal::ConversationRow;
use chorus_proto::methods::conversations::{UseParams, UseResult};

use super::target::find;
use crate::ops::agent::{AgentDescriber, AgentResolver};

/// Selects the conversation that requests mean by `@`. A closed one is opened.
///
/// # Errors
/// `conversation_not_found`.
pub async fn use_(agents: &AgentResolver, describer: &AgentDescriber, params: UseParams) -> Result<UseResult> {
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let one_at_a_time = agents.conversation_locks.lock(agent.settings.id).await;
    let key = find(&agents.index, &agent, Some(&params.conversation))?;
    match agents.index.conversations.get(key) {
        Some(row) => {
            let row = ConversationRow { is_selected: true, closed_at: None, ..(*row).clone() };
            agents.store_conversation(row).await?;
        }
        None => {
            agents.registry.journal().select_main_conversation(key.agent).await?;
            agents.index.conversations.deselect(key.agent);
        }
    }
    drop(one_at_a_time);
    let conversation = describer.describe_conversation(&agent, key).await?;
    Ok(UseResult { agent_name: agent.settings.name.clone(), conversation })
}
