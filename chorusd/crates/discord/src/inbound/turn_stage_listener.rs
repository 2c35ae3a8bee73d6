//! Tracks whether the turn of a message has started, in front of the listener that shows its reply.

use std::sync::Arc;

use chorus_agent_core::turn_sink::TurnListener;
use chorus_proto::methods::send::TurnEvent;
use tokio::sync::watch;
use uuid::Uuid;

/// How far the turn of a message has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum TurnStage {
    /// The agent has not accepted it yet.
    #[default]
    Pending,
    /// The turn with this id waits for other turns.
    Queued(Uuid),
    Started,
}

/// Passes all events on to `inner`, and records the stage.
#[derive(Debug)]
pub(super) struct StageListener {
    inner: Arc<dyn TurnListener>,
    stage: watch::Sender<TurnStage>,
}

impl StageListener {
    pub(super) fn new(inner: Arc<dyn TurnListener>) -> Self {
        Self { inner, stage: watch::channel(TurnStage::Pending).0 }
    }

    /// Returns a receiver of the stage.
    pub(super) fn subscribe(&self) -> watch::Receiver<TurnStage> {
        self.stage.subscribe()
    }
}

impl TurnListener for StageListener {
    fn try_send(&self, said: &TurnEvent) -> bool {
        match said {
            TurnEvent::Queued { turn_id: Some(turn), .. } => _ = self.stage.send_replace(TurnStage::Queued(*turn)),
            TurnEvent::Started { .. } => _ = self.stage.send_replace(TurnStage::Started),
            _ => {}
        }
        self.inner.try_send(said)
    }

    fn send_when_ready(&self, said: TurnEvent) {
        self.inner.send_when_ready(said);
    }
}
