//! The calls of one answer: which of them are carried out, and what comes of each. Part of the state machine.

use std::mem;

use chorus_proto::{ErrorKind, ToolCall};

use super::effect::{Effect, Planned, RunTools};
use super::event::ToolEnded;
use super::state::State;
use super::turn::{Moment, Phase, Turn};
use crate::failure::Failure;
use crate::message::Stored;

/// The calls of one answer that have been begun, in its order. Which result is whose is told by their places: of calls that
/// have one id, the results stand in the record in the order of the calls.
#[derive(Debug)]
pub(super) struct Calls {
    calls: Vec<(String, Came)>,
    /// Results on their way into the journal.
    under_way: usize,
}

/// What came of a call.
#[derive(Debug)]
enum Came {
    Nothing,
    /// A call before it has the same id and no result yet.
    Waits(Stored, Moment),
    /// Its result was handed out.
    Given,
}

impl Calls {
    fn new(calls: &[ToolCall]) -> Self {
        Self { calls: calls.iter().map(|call| (call.id.clone(), Came::Nothing)).collect(), under_way: 0 }
    }

    fn runs(&self, at: usize) -> bool {
        matches!(self.calls.get(at), Some((_, Came::Nothing)))
    }

    /// The call at a place has ended; the results that are to be kept now.
    fn ended(&mut self, at: usize, result: Stored, moment: Moment) -> Vec<(Stored, Moment)> {
        let Some((id, came)) = self.calls.get_mut(at) else { return Vec::new() };
        *came = Came::Waits(result, moment);
        let id = id.clone();
        let mut due = Vec::new();
        for (_, came) in self.calls.iter_mut().filter(|(of, _)| *of == id) {
            match mem::replace(came, Came::Given) {
                Came::Nothing => {
                    *came = Came::Nothing;
                    break;
                }
                Came::Waits(result, moment) => due.push((result, moment)),
                Came::Given => {}
            }
        }
        self.under_way += due.len();
        due
    }

    /// A result is in the journal; whether all are.
    pub fn kept(&mut self) -> bool {
        self.under_way = self.under_way.saturating_sub(1);
        self.under_way == 0 && self.calls.iter().all(|(_, came)| matches!(came, Came::Given))
    }
}

impl Turn {
    /// What the model said is in the journal: its tools are called. Whoever calls them tells when each begins and ends.
    pub(super) fn run_tools(&mut self, effects: &mut Vec<Effect>) {
        let Phase::Keeping(calls) = &mut self.phase else { return };
        let calls = mem::take(calls);
        self.phase = Phase::Tools(Calls::new(&calls));
        let breaker = self.allowance.breaker();
        let calls = calls.into_iter().map(|call| Planned { call, refused: self.allowance.take() }).collect();
        effects.push(Effect::RunTools(Box::new(RunTools {
            turn: self.id,
            step: self.step,
            calls,
            breaker,
            by: self.by.clone(),
            cancelled: self.cut_off.is_some(),
        })));
    }

    /// Why it is to end without another call of its model, because of its tools.
    pub(super) fn halted(&self) -> Option<Failure> {
        let unheeded = || {
            let word = self.allowance.last_word().filter(|_| self.allowance.unheeded)?;
            let failure = Failure::new(ErrorKind::Interrupted, word.unheeded());
            Some(failure.hint("what came of it is in the context; send a message to let it go on"))
        };
        self.stop.clone().or_else(unheeded)
    }
}

impl State {
    /// A tool has ended.
    pub(super) fn tool_ended(&mut self, ended: ToolEnded, effects: &mut Vec<Effect>) {
        let ToolEnded { of: (id, step), moment, at, result, is_error, skipped, stop } = ended;
        let current = |turn: &&mut Turn| turn.id == id && turn.step == step;
        let Some(turn) = self.turn.as_mut().filter(current) else { return };
        let Phase::Tools(calls) = &mut turn.phase else { return };
        if !calls.runs(at) {
            return;
        }
        let due = calls.ended(at, result, moment);
        turn.allowance.ended(is_error, skipped);
        if turn.stop.is_none() {
            turn.stop = stop;
        }
        for (result, moment) in due {
            self.keep_on(result, moment, None, effects);
        }
    }
}
