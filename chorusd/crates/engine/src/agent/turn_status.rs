//! The running turns of all agents, for status requests.

use std::collections::HashMap;

use chorus_agent_core::TurnSnapshot;
use chorus_base::Ticks;
use chorus_base::sync::Mutex;
use chorus_proto::RunningTurn;
use chorus_session::conversation::ConversationKey;

/// The running turns, by conversation.
#[derive(Debug, Default)]
pub struct RunningTurns(Mutex<HashMap<ConversationKey, TurnSnapshot>>);

impl RunningTurns {
    /// Sets or removes the running turn of a conversation.
    pub(super) fn set(&self, conversation: ConversationKey, running: Option<TurnSnapshot>) {
        match running {
            Some(running) => _ = self.0.lock().insert(conversation, running),
            None => _ = self.0.lock().remove(&conversation),
        }
    }

    /// Returns the running turn of a conversation as of `now`.
    #[must_use]
    pub fn status(&self, conversation: ConversationKey, now: Ticks) -> Option<RunningTurn> {
        let TurnSnapshot { turn, step, since, waiting } = self.0.lock().get(&conversation).copied()?;
        Some(RunningTurn { turn_id: turn, step, seconds: now.since(since).as_secs(), waiting })
    }
}
