//! The running turn of an actor as its tasks see it: its id, how to cancel it, its listeners and its right to run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chorus_agent_core::turn_sink::TurnSinks;
use chorus_base::sync::Mutex;
use chorus_proto::methods::send::TurnEvent;
use chorus_proto::pluralize::pluralize;
use chorus_session::conversation::ConversationKey;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::registry::Registry;
use super::turn_slots::TurnSlot;
use crate::tools::PausableTurn;

/// A turn that runs, shared by the actor and the tasks that call its model and tools.
#[derive(Debug, Clone)]
pub(super) struct TurnIo {
    pub id: Uuid,
    pub cancel: CancellationToken,
    pub sinks: TurnSinks,
    /// Filled with the first model call, and empty while the turn waits for a person or another agent.
    slot: Arc<Mutex<Option<TurnSlot>>>,
    /// Held by the one task of the turn that waits for the slot.
    acquiring: Arc<tokio::sync::Mutex<()>>,
    has_waited: Arc<AtomicBool>,
}

impl TurnIo {
    pub(super) fn new(id: Uuid, sinks: TurnSinks) -> Self {
        Self {
            id,
            cancel: CancellationToken::new(),
            sinks,
            slot: Arc::default(),
            acquiring: Arc::default(),
            has_waited: Arc::default(),
        }
    }

    /// Waits until the turn may run beside those of the agent's other conversations. A turn keeps the right until it
    /// ends or pauses. Returns false if it was cancelled first.
    pub(super) async fn wait_for_slot(&self, registry: &Registry, conversation: ConversationKey, most: u64) -> bool {
        let agent = conversation.agent;
        let acquire = async {
            let _one_task = self.acquiring.lock().await;
            if self.slot.lock().is_some() {
                return;
            }
            if let Some(slot) = registry.turn_slots.try_acquire(agent, most) {
                *self.slot.lock() = Some(slot);
                return;
            }
            let verb = if most == 1 { "is" } else { "are" };
            let turns = pluralize(most, "turn");
            let note = format!("waiting: {turns} of this agent {verb} running (concurrent_turns)");
            self.has_waited.store(true, Ordering::Relaxed);
            let _slot_wait = registry.running.mark_slot_wait(self.id);
            self.sinks.send(&TurnEvent::Note(note));
            let slot = registry.turn_slots.acquire(agent, most).await;
            *self.slot.lock() = Some(slot);
        };
        tokio::select! {
            biased;
            () = acquire => true,
            () = self.cancel.cancelled() => false,
        }
    }

    /// Returns true if the turn had to wait for others.
    pub(super) fn has_waited(&self) -> bool {
        self.has_waited.load(Ordering::Relaxed)
    }

    /// Gives the right to run back, because the turn has ended or pauses.
    pub(super) fn release_slot(&self) {
        let slot = self.slot.lock().take();
        drop(slot);
    }
}

/// The running turn of a conversation, for its tool calls.
#[derive(Debug)]
pub(super) struct ConversationTurn {
    pub turn: TurnIo,
    pub registry: Arc<Registry>,
    pub conversation: ConversationKey,
}

impl PausableTurn for ConversationTurn {
    fn pause(&self) {
        self.turn.release_slot();
    }

    fn resume(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(entry) = self.registry.agents.by_id(self.conversation.agent) {
                let most = entry.settings.concurrent_turns;
                self.turn.wait_for_slot(&self.registry, self.conversation, most).await;
            }
        })
    }
}
