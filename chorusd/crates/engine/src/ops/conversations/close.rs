//! The operation `conversations.close`.

use chorus_base::error::{Error, Result};
use chorus_proto::methods::conversations::{CloseParams, CloseResult};
use chorus_proto::{ErrorKind, Session};
use chorus_session::conversation::ConversationKey;
use chorus_store::journal::ConversationRow;

use super::target::find;
use crate::agent::command;
use crate::ops::agent::{AgentDescriber, AgentResolver};

/// Saves what is unsaved, clears the context and closes the conversation.
///
/// # Errors
/// `conversation_not_found`; `denied` for `main`; `busy` while a turn runs.
pub async fn close(agents: &AgentResolver, describer: &AgentDescriber, params: CloseParams) -> Result<CloseResult> {
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let key = find(&agents.index, &agent, Some(&params.conversation))?;
    if key.is_main() {
        return Err(Error::new(ErrorKind::Denied, "the conversation main is always open")
            .hint("to save and clear it: chorusctl context clear --save"));
    }
    let saved = agents.close_conversation(key).await?;
    Ok(CloseResult { conversation: describer.describe_conversation(&agent, key).await?, saved })
}

impl AgentResolver {
    /// Saves, clears and closes a conversation other than `main`. Returns the session that holds its last context. A
    /// message that comes meanwhile is not lost: it is the first of the next context, and opens the conversation again.
    ///
    /// # Errors
    /// `busy` while a turn runs.
    pub async fn close_conversation(&self, key: ConversationKey) -> Result<Option<Session>> {
        let _one_at_a_time = self.conversations_lock.lock().await;
        let saved = match self.registry.context_info(key) {
            Some(_) => match self.registry.ask(key, command::clear(true)).await {
                Ok(cleared) => cleared.saved,
                Err(failure) if failure.kind == ErrorKind::NothingToSave => None,
                Err(failure) => return Err(failure),
            },
            None => None,
        };
        if let Some(row) = self.index.conversations.get(key).filter(|row| row.closed_at.is_none() || row.is_selected) {
            let closed_at = Some(self.registry.now());
            self.store_conversation(ConversationRow { closed_at, is_selected: false, ..(*row).clone() }).await?;
        }
        Ok(saved)
    }
}
