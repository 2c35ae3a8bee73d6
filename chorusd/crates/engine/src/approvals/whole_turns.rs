//! Turns of which somebody approved all further questions. In memory only: a restart asks again.

use std::collections::HashMap;

use chorus_base::requester::Answerer;
use chorus_base::sync::Mutex;
use uuid::Uuid;

/// The approval of a whole turn.
#[derive(Debug, Clone)]
pub struct TurnApproval {
    pub turn: Uuid,
    /// Who approved it.
    pub by: Answerer,
    /// Id of the question at which they did.
    pub id: String,
}

/// The approved turns, by agent and turn.
#[derive(Debug, Default)]
pub(super) struct WholeTurns(Mutex<HashMap<(Uuid, Uuid), TurnApproval>>);

impl WholeTurns {
    pub(super) fn insert(&self, agent: Uuid, approval: TurnApproval) {
        self.0.lock().insert((agent, approval.turn), approval);
    }

    /// Returns the approval of this turn.
    pub(super) fn get(&self, agent: Uuid, turn: Uuid) -> Option<TurnApproval> {
        self.0.lock().get(&(agent, turn)).cloned()
    }

    pub(super) fn end(&self, agent: Uuid, turn: Uuid) {
        self.0.lock().remove(&(agent, turn));
    }

    /// Removes the approvals of all turns of an agent.
    pub(super) fn end_all(&self, agent: Uuid) {
        self.0.lock().retain(|(of, _), _| *of != agent);
    }
}
