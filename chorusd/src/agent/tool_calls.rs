//! The calls of one answer: which of them are carried out, and what comes of each. Part of the state machine.

use std::mem;

use chorus_proto::ErrorKind;

use super::effect::{Effect, Planned, RunTools};
use super::event::ToolEnded;
use super::state::State;
use super::turn::{Phase, Turn};
use crate::failure::Failure;

impl Turn {
    /// What the model said is in the journal: its tools are called. Whoever calls them tells when each begins and ends.
    pub(super) fn run_tools(&mut self, effects: &mut Vec<Effect>) {
        let Phase::Keeping(calls) = &mut self.phase else { return };
        let running = mem::take(calls);
        let calls = running.iter().map(|call| Planned { call: call.clone(), refused: self.allowance.take() }).collect();
        effects.push(Effect::RunTools(Box::new(RunTools {
            turn: self.id,
            step: self.step,
            calls,
            by: self.by.clone(),
            cancelled: self.cut_off.is_some(),
        })));
        self.phase = Phase::Tools { running, kept: 0 };
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
        let ToolEnded { of: (id, step), moment, call, result, is_error, stop } = ended;
        let current = |turn: &&mut Turn| turn.id == id && turn.step == step;
        let Some(turn) = self.turn.as_mut().filter(current) else { return };
        let Phase::Tools { running, kept } = &mut turn.phase else { return };
        let Some(at) = running.iter().position(|running| running.id == call) else { return };
        running.remove(at);
        *kept += 1;
        turn.allowance.ended(is_error);
        if turn.stop.is_none() {
            turn.stop = stop;
        }
        self.keep_on(result, moment, None, effects);
    }
}
