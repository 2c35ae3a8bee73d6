//! The operation `conversations.close`.

use chorus_base::error::{Error, Result};
use chorus_journal::ConversationRow;
use chorus_proto::methods::conversations::{CloseParams, CloseResult};
use chorus_proto::{ErrorKind, Session};
use chorus_session::conversation::ConversationKey;

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
            .hint("to save and clear it: chorusctl -C main context clear --save"));
    }
    let saved = agents.close_conversation(key).await?;
    let worktree = agents.close_worktree(&agent, key).await.map(|removal| removal.closed);
    Ok(CloseResult { conversation: describer.describe_conversation(&agent, key).await?, saved, worktree })
}

impl AgentResolver {
    /// Saves, clears and closes a conversation other than `main`. Returns the session that holds its last context. A
    /// message that comes meanwhile is not lost: it is the first of the next context, and opens the conversation again.
    /// A context without messages, which no session can hold, stays with what is pinned in it.
    ///
    /// # Errors
    /// `busy` while a turn runs.
    pub async fn close_conversation(&self, key: ConversationKey) -> Result<Option<Session>> {
        let one_at_a_time = self.conversation_locks.lock(key.agent).await;
        let saved = match self.has_messages(key) {
            true => match self.registry.ask(key, command::clear(true)).await {
                Ok(cleared) => cleared.saved,
                Err(failure) if failure.kind == ErrorKind::NothingToSave => None,
                Err(failure) => return Err(failure),
            },
            false => None,
        };
        if let Some(row) = self.index.conversations.get(key).filter(|row| row.closed_at.is_none() || row.is_selected) {
            // A message that came since the context was cleared keeps it open.
            let closed_at = (!self.has_messages(key)).then(|| self.registry.now());
            self.store_conversation(ConversationRow { closed_at, is_selected: false, ..(*row).clone() }).await?;
        }
        if self.has_messages(key) {
            drop(one_at_a_time);
            self.open_conversation(key).await?;
        }
        Ok(saved)
    }

    /// Returns true if the conversation has a live context with messages.
    pub(in crate::ops) fn has_messages(&self, key: ConversationKey) -> bool {
        self.registry.context_info(key).is_some_and(|context| context.messages > 0)
    }
}
