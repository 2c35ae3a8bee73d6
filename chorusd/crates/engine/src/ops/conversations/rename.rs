//! The operation `conversations.rename`.

use chorus_base::error::{Error, Result};
use chorus_journal::ConversationRow;
use chorus_proto::ErrorKind;
use chorus_proto::methods::conversations::{RenameParams, RenameResult};
use chorus_session::conversation::ConversationKey;

use super::new::{check_conversation_name, exists_error};
use super::target::find;
use crate::ops::agent::{AgentDescriber, AgentResolver};

impl AgentResolver {
    /// Gives a conversation other than `main` another title; does nothing if it has that one.
    ///
    /// # Errors
    /// `busy`, `disk_full`, `storage_failed`.
    pub async fn set_conversation_title(&self, key: ConversationKey, title: String) -> Result<()> {
        let _one_at_a_time = self.conversation_locks.lock(key.agent).await;
        let Some(row) = self.index.conversations.get(key) else { return Ok(()) };
        if row.title.as_ref() == Some(&title) {
            return Ok(());
        }
        self.store_conversation(ConversationRow { title: Some(title), ..(*row).clone() }).await
    }
}

/// Gives a conversation another name.
///
/// # Errors
/// `conversation_not_found`, `invalid_name`, `already_exists`; `denied` for `main`.
pub async fn rename(agents: &AgentResolver, describer: &AgentDescriber, params: RenameParams) -> Result<RenameResult> {
    check_conversation_name(&params.name)?;
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let one_at_a_time = agents.conversation_locks.lock(agent.settings.id).await;
    let key = find(&agents.index, &agent, Some(&params.conversation))?;
    let row = agents.index.conversations.get(key).ok_or_else(|| {
        Error::new(ErrorKind::Denied, "the conversation main keeps its name")
            .hint("create another one: chorusctl conversations new NAME")
    })?;
    let taken = agents.index.conversations.by_name(key.agent, &params.name);
    if taken.is_some_and(|other| other.key != key) {
        return Err(exists_error(&agent.settings.name, &params.name));
    }
    agents.store_conversation(ConversationRow { name: params.name, ..(*row).clone() }).await?;
    drop(one_at_a_time);
    let conversation = describer.describe_conversation(&agent, key).await?;
    Ok(RenameResult { conversation, old_name: row.name.clone() })
}
