//! The running turn, for status requests.

use chorus_base::Ticks;
use uuid::Uuid;

use super::state::State;

/// State of a running turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnSnapshot {
    pub turn: Uuid,
    /// Number of the model call.
    pub step: u32,
    /// When the turn started.
    pub since: Ticks,
    /// Number of turns that wait for it to end.
    pub waiting: u64,
}

impl State {
    /// Returns the running turn.
    #[must_use]
    pub fn running_turn(&self) -> Option<TurnSnapshot> {
        let turn = self.turn.as_ref()?;
        Some(TurnSnapshot {
            turn: turn.id,
            step: turn.step,
            since: turn.started_at,
            waiting: self.queued_turns.len() as u64,
        })
    }
}
