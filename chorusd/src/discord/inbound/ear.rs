//! Hears whether the turn of a message has begun, besides whoever shows its answer.

use std::sync::Arc;

use chorus_proto::methods::send::Said;
use tokio::sync::watch;
use uuid::Uuid;

use crate::agent::voice::Ear;

/// How far the turn of a message has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stage {
    /// It has not reached its agent.
    #[default]
    Unknown,
    /// It waits for other turns.
    Waits(Uuid),
    Begun,
}

/// Passes on what is said, and remembers the stage.
#[derive(Debug)]
pub struct Listening {
    shown: Arc<dyn Ear>,
    stage: watch::Sender<Stage>,
}

impl Listening {
    pub fn new(shown: Arc<dyn Ear>) -> Self {
        Self { shown, stage: watch::channel(Stage::Unknown).0 }
    }

    /// Where the stage is heard.
    pub fn stages(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }
}

impl Ear for Listening {
    fn now(&self, said: &Said) -> bool {
        match said {
            Said::Queued { turn_id: Some(turn), .. } => _ = self.stage.send_replace(Stage::Waits(*turn)),
            Said::Started { .. } => _ = self.stage.send_replace(Stage::Begun),
            _ => {}
        }
        self.shown.now(said)
    }

    fn later(&self, said: Said) {
        self.shown.later(said);
    }
}
