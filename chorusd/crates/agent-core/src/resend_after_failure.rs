//! Detects a message that is sent again because its turn failed, so that it is in the context only once. Part of the
//! state machine.

use chorus_session::stored_message::{ContextNo, StoredMessage};

use super::state::State;

/// The state of the context after a turn that ended without any reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnansweredTurn {
    context: ContextNo,
    /// How many messages there were; the last one is the user's.
    messages: usize,
}

impl State {
    /// Records whether the turn whose message is at index `opened` was answered.
    pub(super) fn record_answered(&mut self, opened: usize, answered: bool) {
        let context = self.context.as_ref().filter(|_| !answered);
        self.unanswered = context
            .filter(|context| context.messages.len() == opened + 1)
            .map(|context| UnansweredTurn { context: context.number, messages: context.messages.len() });
    }

    /// Whether `message` is the one that started the last turn, and nothing has been added since.
    pub(super) fn is_resent(&self, message: &StoredMessage) -> bool {
        let Some(context) = self.context.as_ref().filter(|_| self.pending_appends.is_empty()) else { return false };
        let now = UnansweredTurn { context: context.number, messages: context.messages.len() };
        let last = context.messages.last().filter(|_| self.unanswered == Some(now));
        let (Some(Ok(last)), Ok(this)) = (last.map(StoredMessage::to_message), message.to_message()) else {
            return false;
        };
        (last.role, last.content, last.author, last.source, last.attachments)
            == (this.role, this.content, this.author, this.source, this.attachments)
    }
}
