//! The running turns of all agents, for status requests.

use std::collections::HashMap;

use chorus_agent_core::TurnSnapshot;
use chorus_base::Ticks;
use chorus_base::sync::Mutex;
use chorus_proto::RunningTurn;
use uuid::Uuid;

/// The running turns, by agent.
#[derive(Debug, Default)]
pub struct RunningTurns(Mutex<HashMap<Uuid, TurnSnapshot>>);

impl RunningTurns {
    /// Sets or removes the running turn of an agent.
    pub(super) fn set(&self, agent: Uuid, running: Option<TurnSnapshot>) {
        match running {
            Some(running) => _ = self.0.lock().insert(agent, running),
            None => _ = self.0.lock().remove(&agent),
        }
    }

    /// Returns the running turn of an agent as of `now`.
    #[must_use]
    pub fn status(&self, agent: Uuid, now: Ticks) -> Option<RunningTurn> {
        let TurnSnapshot { turn, step, since, waiting } = self.0.lock().get(&agent).copied()?;
        Some(RunningTurn { turn_id: turn, step, seconds: now.since(since).as_secs(), waiting })
    }
}
