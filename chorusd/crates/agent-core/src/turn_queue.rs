//! The queue of turns that wait for the running one. Part of the state machine.

use chorus_base::error::Error;
use chorus_proto::methods::send::TurnEvent;
use uuid::Uuid;

use super::effect::Effect;
use super::event::{RequestId, RequestMeta};
use super::interruption_reason::Interruption;
use super::state::State;
use super::turn::TurnRequest;

/// Maximum number of queued turns.
const MAX_QUEUED_TURNS: usize = 64;

/// A queued turn.
#[derive(Debug)]
pub(super) struct QueuedTurn {
    pub meta: RequestMeta,
    pub request: TurnRequest,
    /// Further requests with the same key.
    pub joined_requests: Vec<RequestId>,
}

impl QueuedTurn {
    /// Returns all requests that wait for the turn.
    pub(crate) fn requests(&self) -> impl Iterator<Item = RequestId> + '_ {
        std::iter::once(self.meta.id).chain(self.joined_requests.iter().copied())
    }
}

impl State {
    /// Queues a turn behind those before it.
    pub(super) fn enqueue_turn(&mut self, queued: QueuedTurn, effects: &mut Vec<Effect>) {
        let id = queued.meta.id;
        if self.queued_turns.len() >= MAX_QUEUED_TURNS {
            effects.push(Effect::Reply(id, Err(Error::busy())));
            return;
        }
        let at = self.queued_turns.len();
        self.queued_turns.push_back(queued);
        self.send_queue_position(at, id, effects);
    }

    /// Adds a request to the queued turn at this index.
    pub(super) fn join_queued_turn(&mut self, at: usize, request: RequestId, effects: &mut Vec<Effect>) {
        if let Some(queued) = self.queued_turns.get_mut(at) {
            queued.joined_requests.push(request);
        }
        self.send_queue_position(at, request, effects);
    }

    /// Sends the number of turns before the one at this index, including the running one.
    fn send_queue_position(&self, at: usize, request: RequestId, effects: &mut Vec<Effect>) {
        let turn_id = self.queued_turns.get(at).map(|queued| queued.request.turn);
        effects.push(Effect::SendTo(request, TurnEvent::Queued { before: at as u64 + 1, turn_id }));
        effects.push(Effect::AddApprovalListener(request));
    }

    /// Removes `turn` from the queue. Returns false if it is not queued.
    pub(super) fn withdraw_turn(&mut self, turn: Uuid, effects: &mut Vec<Effect>) -> bool {
        let at = self.queued_turns.iter().position(|queued| queued.request.turn == turn);
        let Some(queued) = at.and_then(|at| self.queued_turns.remove(at)) else { return false };
        refuse_turn(&queued, Interruption::Cancelled, effects);
        true
    }

    /// Refuses all queued turns.
    pub(super) fn refuse_queued(&mut self, why: Interruption, effects: &mut Vec<Effect>) {
        for queued in std::mem::take(&mut self.queued_turns) {
            refuse_turn(&queued, why, effects);
        }
    }

    /// Starts the next turn if nothing else is in progress.
    pub(super) fn start_next_turn(&mut self, effects: &mut Vec<Effect>) {
        if self.turn.is_none()
            && self.exclusive.is_none()
            && self.waiting_exclusive.is_none()
            && let Some(queued) = self.queued_turns.pop_front()
        {
            self.begin_turn(queued, effects);
        }
    }
}

fn refuse_turn(queued: &QueuedTurn, why: Interruption, effects: &mut Vec<Effect>) {
    for request in queued.requests() {
        effects.push(Effect::Reply(request, Err(why.error_for_queued_turn())));
    }
}
