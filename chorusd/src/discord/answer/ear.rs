//! Listens to a turn without ever holding it up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chorus_proto::methods::send::Said;
use tokio::sync::Notify;
use uuid::Uuid;

use super::heard::Heard;
use super::running::Running;
use crate::agent::voice;

/// One listener: what it heard is looked at when there is time.
#[derive(Debug)]
pub struct Ear {
    heard: Mutex<Heard>,
    news: Notify,
    running: Arc<Running>,
    asked: super::running::Asked,
}

impl Ear {
    pub fn new(running: Arc<Running>, asked: super::running::Asked) -> Self {
        Self { heard: Mutex::default(), news: Notify::new(), running, asked }
    }

    /// Waits for something that was said since it waited last.
    pub async fn news(&self) {
        self.news.notified().await;
    }

    /// What was heard so far.
    pub fn so_far(&self) -> Heard {
        self.heard().clone()
    }

    pub fn turn(&self) -> Option<Uuid> {
        self.heard().turn
    }

    /// Who stopped the turn.
    pub fn stopped_by(&self) -> Option<String> {
        self.running.stopped_by(self.turn()?)
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl voice::Ear for Ear {
    fn now(&self, said: &Said) -> bool {
        let mut heard = self.heard();
        let before = heard.turn;
        heard.hear(said);
        let turn = heard.turn;
        drop(heard);
        if let Some(turn) = turn.filter(|_| turn != before) {
            if let Some(before) = before {
                self.running.ended(before);
            }
            self.running.begins(turn, &self.asked);
        }
        self.news.notify_one();
        true
    }

    fn later(&self, said: Said) {
        self.now(&said);
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        if let Some(turn) = self.turn() {
            self.running.ended(turn);
        }
    }
}
