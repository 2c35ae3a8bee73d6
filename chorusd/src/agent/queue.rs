//! Turns that wait for the one that runs. Part of the state machine.

use chorus_proto::methods::send::Said;
use uuid::Uuid;

use super::cut_off::CutOff;
use super::effect::Effect;
use super::event::{Asked, RequestId};
use super::state::State;
use super::turn::Send;
use crate::failure::Failure;

/// As many may wait.
const MAX_QUEUED: usize = 64;

/// A turn that waits.
#[derive(Debug)]
pub(super) struct Queued {
    pub asked: Asked,
    pub send: Send,
    /// Who came with the same key.
    pub also: Vec<RequestId>,
}

impl Queued {
    /// All who wait for it.
    pub fn requests(&self) -> impl Iterator<Item = RequestId> + '_ {
        std::iter::once(self.asked.id).chain(self.also.iter().copied())
    }
}

impl State {
    /// Lets a turn wait for those before it.
    pub(super) fn wait_in_turn(&mut self, queued: Queued, effects: &mut Vec<Effect>) {
        let id = queued.asked.id;
        if self.queue.len() >= MAX_QUEUED {
            effects.push(Effect::Reply(id, Err(Failure::busy())));
            return;
        }
        let at = self.queue.len();
        self.queue.push_back(queued);
        self.tell_place(at, id, effects);
    }

    /// One more waits for the turn at this place.
    pub(super) fn wait_too(&mut self, at: usize, request: RequestId, effects: &mut Vec<Effect>) {
        if let Some(queued) = self.queue.get_mut(at) {
            queued.also.push(request);
        }
        self.tell_place(at, request, effects);
    }

    /// Says what is before the turn at this place: the one that runs, too.
    fn tell_place(&self, at: usize, request: RequestId, effects: &mut Vec<Effect>) {
        let turn_id = self.queue.get(at).map(|queued| queued.send.turn);
        effects.push(Effect::Say(request, Said::Queued { before: at as u64 + 1, turn_id }));
        effects.push(Effect::Wait(request));
    }

    /// Takes the message of `turn` back; false where it does not wait.
    pub(super) fn take_back(&mut self, turn: Uuid, effects: &mut Vec<Effect>) -> bool {
        let at = self.queue.iter().position(|queued| queued.send.turn == turn);
        let Some(queued) = at.and_then(|at| self.queue.remove(at)) else { return false };
        refuse(&queued, CutOff::Hand, effects);
        true
    }

    /// Lets nobody wait for a turn any more.
    pub(super) fn refuse_queued(&mut self, why: CutOff, effects: &mut Vec<Effect>) {
        for queued in std::mem::take(&mut self.queue) {
            refuse(&queued, why, effects);
        }
    }

    /// The next turn, where nothing else is under way.
    pub(super) fn next_turn(&mut self, effects: &mut Vec<Effect>) {
        if self.turn.is_none()
            && self.busy.is_none()
            && self.waiting.is_none()
            && let Some(queued) = self.queue.pop_front()
        {
            self.begin_turn(queued, effects);
        }
    }
}

fn refuse(queued: &Queued, why: CutOff, effects: &mut Vec<Effect>) {
    for request in queued.requests() {
        effects.push(Effect::Reply(request, Err(why.before_it_began())));
    }
}
