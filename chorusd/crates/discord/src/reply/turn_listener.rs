//! Listens to a turn without ever blocking it.

use std::sync::Arc;

use chorus_agent_core::turn_sink;
use chorus_base::sync::Mutex;
use chorus_proto::methods::send::TurnEvent;
use tokio::sync::Notify;
use uuid::Uuid;

use super::progress::TurnProgress;
use super::turn_owners::TurnOwners;

/// Listener of one turn. It collects the progress, which is read when there is time.
#[derive(Debug)]
pub(super) struct ReplyListener {
    progress: Mutex<TurnProgress>,
    changed: Notify,
    running_turns: Arc<TurnOwners>,
    owner: super::turn_owners::TurnOwner,
}

impl ReplyListener {
    pub(super) fn new(running_turns: Arc<TurnOwners>, owner: super::turn_owners::TurnOwner) -> Self {
        Self { progress: Mutex::default(), changed: Notify::new(), running_turns, owner }
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

    /// Returns the name of the person who stopped the turn.
    pub(super) fn stopped_by(&self) -> Option<String> {
        self.running_turns.stopped_by(self.turn_id()?)
    }
}

impl turn_sink::TurnListener for ReplyListener {
    fn try_send(&self, said: &TurnEvent) -> bool {
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
