//! A message that is sent again because nobody answered it: it is in the context once. Part of the state machine.

use super::state::State;
use crate::message::{ContextNo, StoredMessage};

/// Where a turn ended without a word of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnansweredTurn {
    context: ContextNo,
    /// Messages there were then, the question last.
    messages: usize,
}

impl State {
    /// Notes how the turn ended whose message stands at `opened`.
    pub(super) fn record_answered(&mut self, opened: usize, answered: bool) {
        let context = self.context.as_ref().filter(|_| !answered);
        self.unanswered = context
            .filter(|context| context.messages.len() == opened + 1)
            .map(|context| UnansweredTurn { context: context.number, messages: context.messages.len() });
    }

    /// Returns true for the message that the last turn was begun with, where nothing has come since.
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
