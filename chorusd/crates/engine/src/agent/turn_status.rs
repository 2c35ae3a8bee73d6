//! The running turns of all agents, for status requests.

use std::collections::{HashMap, HashSet};

use chorus_agent_core::TurnSnapshot;
use chorus_base::Ticks;
use chorus_base::sync::Mutex;
use chorus_proto::RunningTurn;
use chorus_session::conversation::ConversationKey;
use tokio::sync::Notify;
use uuid::Uuid;

/// The running turns.
#[derive(Debug, Default)]
pub struct RunningTurns {
    by_conversation: Mutex<HashMap<ConversationKey, TurnSnapshot>>,
    /// Turns that wait for the right to run.
    waiting_for_slot: Mutex<HashSet<Uuid>>,
    /// Told when a turn has ended.
    ended: Notify,
}

/// Marks a turn as waiting for the right to run, until it is dropped.
#[derive(Debug)]
pub(super) struct SlotWait<'a> {
    turns: &'a RunningTurns,
    turn: Uuid,
}

impl Drop for SlotWait<'_> {
    fn drop(&mut self) {
        self.turns.waiting_for_slot.lock().remove(&self.turn);
    }
}

impl RunningTurns {
    /// Sets or removes the running turn of a conversation.
    pub(super) fn set(&self, conversation: ConversationKey, running: Option<TurnSnapshot>) {
        match running {
            Some(running) => _ = self.by_conversation.lock().insert(conversation, running),
            None => {
                if self.by_conversation.lock().remove(&conversation).is_some() {
                    self.ended.notify_waiters();
                }
            }
        }
    }

    /// Waits until no turn of an agent runs.
    pub(crate) async fn wait_until_idle(&self, agent: Uuid) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if self.is_idle(agent) {
                return;
            }
            ended.await;
        }
    }

    /// Returns whether no turn of an agent runs.
    pub(crate) fn is_idle(&self, agent: Uuid) -> bool {
        !self.by_conversation.lock().keys().any(|key| key.agent == agent)
    }

    /// Marks a turn as waiting for the right to run.
    #[must_use]
    pub(super) fn mark_slot_wait(&self, turn: Uuid) -> SlotWait<'_> {
        self.waiting_for_slot.lock().insert(turn);
        SlotWait { turns: self, turn }
    }

    /// Returns the running turn of a conversation as of `now`.
    #[must_use]
    pub fn status(&self, conversation: ConversationKey, now: Ticks) -> Option<RunningTurn> {
        let TurnSnapshot { turn, step, since, waiting } = self.by_conversation.lock().get(&conversation).copied()?;
        let waits_for_slot = self.waiting_for_slot.lock().contains(&turn);
        Some(RunningTurn { turn_id: turn, step, seconds: now.since(since).as_secs(), waiting, waits_for_slot })
    }
}
