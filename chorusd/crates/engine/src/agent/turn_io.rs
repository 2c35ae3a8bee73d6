//! The running turn of an actor as its tasks see it: its id, how to cancel it, its listeners and its right to run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chorus_agent_core::turn_sink::TurnSinks;
use chorus_proto::methods::send::TurnEvent;
use chorus_session::conversation::ConversationKey;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::registry::Registry;
use super::turn_slots::TurnSlot;

/// A turn that runs, shared by the actor and the tasks that call its model and tools.
#[derive(Debug, Clone)]
pub(super) struct TurnIo {
    pub id: Uuid,
    pub cancel: CancellationToken,
    pub sinks: TurnSinks,
    /// Filled with the first model call.
    slot: Arc<OnceCell<TurnSlot>>,
    has_waited: Arc<AtomicBool>,
}

impl TurnIo {
    pub(super) fn new(id: Uuid, sinks: TurnSinks) -> Self {
        Self { id, cancel: CancellationToken::new(), sinks, slot: Arc::default(), has_waited: Arc::default() }
    }

    /// Waits until the turn may run beside those of the agent's other conversations. A turn keeps the right until it
    /// ends. Returns false if it was cancelled first.
    pub(super) async fn wait_for_slot(&self, registry: &Registry, conversation: ConversationKey, most: u64) -> bool {
        let agent = conversation.agent;
        let acquire = self.slot.get_or_init(|| async {
            if let Some(slot) = registry.turn_slots.try_acquire(agent, most) {
                return slot;
            }
            let note = format!("waiting: {most} turns of this agent are running (concurrent_turns)");
            self.has_waited.store(true, Ordering::Relaxed);
            self.sinks.send(&TurnEvent::Note(note));
            registry.turn_slots.acquire(agent, most).await
        });
        tokio::select! {
            biased;
            _ = acquire => true,
            () = self.cancel.cancelled() => false,
        }
    }

    /// Returns true if the turn had to wait for others.
    pub(super) fn has_waited(&self) -> bool {
        self.has_waited.load(Ordering::Relaxed)
    }

    /// Gives the right to run back, because the turn has ended.
    pub(super) fn release_slot(&mut self) {
        self.slot = Arc::default();
    }
}
