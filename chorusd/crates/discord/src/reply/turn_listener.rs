//! Listens to a turn without ever blocking it.

use std::sync::Arc;

use chorus_agent_core::turn_sink::TurnListener;
use chorus_base::requester::Requester;
use chorus_base::sync::Mutex;
use chorus_proto::methods::send::TurnEvent;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use super::progress::TurnProgress;
use super::turn_owners::{TurnOwner, TurnOwners};

/// How far the turn of a message has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TurnStage {
    /// The agent has not accepted it yet.
    #[default]
    Pending,
    /// The turn with this id waits for other turns.
    Queued(Uuid),
    Started,
}

/// Listener of the turn of one message. It collects the progress, which is read when there is time, and the stage.
#[derive(Debug)]
pub(crate) struct ReplyListener {
    progress: Mutex<TurnProgress>,
    stage: watch::Sender<TurnStage>,
    changed: Notify,
    running_turns: Arc<TurnOwners>,
    owner: TurnOwner,
}

impl ReplyListener {
    pub(super) fn new(running_turns: Arc<TurnOwners>, owner: TurnOwner) -> Self {
        let stage = watch::Sender::default();
        Self { progress: Mutex::default(), stage, changed: Notify::new(), running_turns, owner }
    }

    /// Sets the stage back, because the message is about to be sent (again).
    pub(super) fn reset_stage(&self) {
        self.stage.send_replace(TurnStage::Pending);
    }

    /// Ends the progress, but keeps the text so far. Returns whether the turn had started.
    pub(super) fn pause(&self) -> bool {
        let had_started = self.stage.send_replace(TurnStage::Pending) == TurnStage::Started;
        let turn = self.progress.lock().pause();
        if let Some(turn) = turn {
            self.running_turns.remove(turn);
            self.changed.notify_one();
        }
        had_started
    }

    /// Returns a receiver of the stage.
    pub(crate) fn subscribe_stage(&self) -> watch::Receiver<TurnStage> {
        self.stage.subscribe()
    }

    /// Waits for a turn event since the last call.
    pub(super) async fn wait_for_change(&self) {
        self.changed.notified().await;
    }

    /// Returns the progress of the turn so far.
    pub(super) fn progress(&self) -> TurnProgress {
        self.progress.lock().clone()
    }

    pub(super) fn turn_id(&self) -> Option<Uuid> {
        self.progress.lock().turn
    }

    /// Returns the name of the person who requested the turn.
    pub(super) fn owner_name(&self) -> Option<&str> {
        match &self.owner.by {
            Requester::Person { name, .. } => Some(name),
            Requester::Owner | Requester::Nobody => None,
        }
    }

    /// Returns the name of the person who stopped the turn.
    pub(super) fn stopped_by(&self) -> Option<String> {
        self.running_turns.stopped_by(self.turn_id()?)
    }
}

impl TurnListener for ReplyListener {
    fn try_send(&self, said: &TurnEvent) -> bool {
        match said {
            TurnEvent::Queued { turn_id: Some(turn), .. } => _ = self.stage.send_replace(TurnStage::Queued(*turn)),
            TurnEvent::Started { .. } => _ = self.stage.send_replace(TurnStage::Started),
            _ => {}
        }
        let mut heard = self.progress.lock();
        let before = heard.turn;
        heard.apply(said);
        let turn = heard.turn;
        drop(heard);
        if let Some(turn) = turn.filter(|_| turn != before) {
            if let Some(before) = before {
                self.running_turns.remove(before);
            }
            self.running_turns.insert(turn, &self.owner);
        }
        self.changed.notify_one();
        true
    }

    fn send_when_ready(&self, said: TurnEvent) {
        self.try_send(&said);
    }
}

impl Drop for ReplyListener {
    fn drop(&mut self) {
        if let Some(turn) = self.turn_id() {
            self.running_turns.remove(turn);
        }
    }
}
