//! The calls of one answer: which of them are carried out, and what comes of each. Part of the state machine.

use std::mem;

use chorus_proto::{ErrorKind, ToolCall};

use super::effect::{Effect, PlannedCall, RunTools};
use super::event::ToolEnded;
use super::state::State;
use super::turn::{EventTime, Turn, TurnPhase};
use crate::error::Error;
use crate::message::StoredMessage;

/// The calls of one answer that have been begun, in its order. Which result is whose is told by their places: of calls that
/// have one id, the results stand in the record in the order of the calls.
#[derive(Debug)]
pub(super) struct CallResults {
    calls: Vec<(String, CallState)>,
    /// Results on their way into the journal.
    unrecorded: usize,
}

/// What came of a call.
#[derive(Debug)]
enum CallState {
    Running,
    /// A call before it has the same id and no result yet.
    Held(StoredMessage, EventTime),
    /// Its result was handed out.
    Released,
}

impl CallResults {
    fn new(calls: &[ToolCall]) -> Self {
        Self { calls: calls.iter().map(|call| (call.id.clone(), CallState::Running)).collect(), unrecorded: 0 }
    }

    fn is_running(&self, at: usize) -> bool {
        matches!(self.calls.get(at), Some((_, CallState::Running)))
    }

    /// The call at a place has ended; the results that are to be kept now.
    fn complete(&mut self, at: usize, result: StoredMessage, moment: EventTime) -> Vec<(StoredMessage, EventTime)> {
        let Some((id, came)) = self.calls.get_mut(at) else { return Vec::new() };
        *came = CallState::Held(result, moment);
        let id = id.clone();
        let mut due = Vec::new();
        for (_, came) in self.calls.iter_mut().filter(|(of, _)| *of == id) {
            match mem::replace(came, CallState::Released) {
                CallState::Running => {
                    *came = CallState::Running;
                    break;
                }
                CallState::Held(result, moment) => due.push((result, moment)),
                CallState::Released => {}
            }
        }
        self.unrecorded += due.len();
        due
    }

    /// A result is in the journal; whether all are.
    pub fn on_result_recorded(&mut self) -> bool {
        self.unrecorded = self.unrecorded.saturating_sub(1);
        self.unrecorded == 0 && self.calls.iter().all(|(_, came)| matches!(came, CallState::Released))
    }
}

impl Turn {
    /// What the model said is in the journal: its tools are called. Whoever calls them tells when each begins and ends.
    pub(super) fn run_tools(&mut self, effects: &mut Vec<Effect>) {
        let TurnPhase::RecordingReply(calls) = &mut self.phase else { return };
        let calls = mem::take(calls);
        self.phase = TurnPhase::RunningTools(CallResults::new(&calls));
        let breaker = self.tool_budget.breaker();
        let calls = calls.into_iter().map(|call| PlannedCall { call, refusal: self.tool_budget.take_call() }).collect();
        effects.push(Effect::RunTools(Box::new(RunTools {
            turn: self.id,
            step: self.step,
            calls,
            breaker,
            requester: self.requester.clone(),
            cancelled: self.interruption.is_some(),
        })));
    }

    /// Why it is to end without another call of its model, because of its tools.
    pub(super) fn stop_reason(&self) -> Option<Error> {
        let unheeded = || {
            let word = self.tool_budget.cutoff().filter(|_| self.tool_budget.cutoff_ignored)?;
            let failure = Error::new(ErrorKind::Interrupted, word.ignored_message());
            Some(failure.hint("what came of it is in the context; send a message to let it go on"))
        };
        self.fatal.clone().or_else(unheeded)
    }
}

impl State {
    /// A tool has ended.
    pub(super) fn on_tool_ended(&mut self, ended: ToolEnded, effects: &mut Vec<Effect>) {
        let ToolEnded { turn_step: (id, step), moment, call_index: at, result, is_error, skipped, fatal: stop } = ended;
        let current = |turn: &&mut Turn| turn.id == id && turn.step == step;
        let Some(turn) = self.turn.as_mut().filter(current) else { return };
        let TurnPhase::RunningTools(calls) = &mut turn.phase else { return };
        if !calls.is_running(at) {
            return;
        }
        let due = calls.complete(at, result, moment);
        turn.tool_budget.record_result(is_error, skipped);
        if turn.fatal.is_none() {
            turn.fatal = stop;
        }
        for (result, moment) in due {
            self.append_to_context(result, moment, None, effects);
        }
    }
}
