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

/// At most one turn for each agent, because an agent has one at a time.
#[derive(Debug, Default)]
pub(super) struct WholeTurns(Mutex<HashMap<Uuid, TurnApproval>>);

impl WholeTurns {
    pub(super) fn insert(&self, agent: Uuid, approval: TurnApproval) {
        self.0.lock().insert(agent, approval);
    }

    /// Returns the approval of this turn. One of another turn of the agent is over.
    pub(super) fn get(&self, agent: Uuid, turn: Uuid) -> Option<TurnApproval> {
        self.0.lock().get(&agent).filter(|approval| approval.turn == turn).cloned()
    }

    pub(super) fn end(&self, agent: Uuid) {
        self.0.lock().remove(&agent);
    }
}
