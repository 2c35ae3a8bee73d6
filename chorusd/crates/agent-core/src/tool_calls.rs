//! The tool calls of one reply and the order of their results. Part of the state machine.

use std::mem;

use chorus_base::error::Error;
use chorus_proto::{ErrorKind, ToolCall};
use chorus_session::stored_message::StoredMessage;

use super::effect::{Effect, PlannedCall, RunTools};
use super::event::ToolEnded;
use super::state::State;
use super::turn::{EventTime, Turn, TurnPhase};

/// The started calls of one reply, in order. A result is matched by the index of its call: the results of calls that
/// share an id are recorded in the order of the calls.
#[derive(Debug)]
pub(super) struct CallResults {
    calls: Vec<(String, CallState)>,
    /// Results that the journal has not recorded yet.
    unrecorded: usize,
}

/// State of a call.
#[derive(Debug)]
enum CallState {
    Running,
    /// It has a result, but an earlier call with the same id has none yet.
    Held(StoredMessage, EventTime),
    /// Its result was released for the journal.
    Released,
}

impl CallResults {
    fn new(calls: &[ToolCall]) -> Self {
        Self { calls: calls.iter().map(|call| (call.id.clone(), CallState::Running)).collect(), unrecorded: 0 }
    }

    fn is_running(&self, at: usize) -> bool {
        matches!(self.calls.get(at), Some((_, CallState::Running)))
    }

    /// Completes the call at an index. Returns the results to record now.
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

    /// Counts a recorded result. Returns whether all results are recorded.
    pub(crate) fn on_result_recorded(&mut self) -> bool {
        self.unrecorded = self.unrecorded.saturating_sub(1);
        self.unrecorded == 0 && self.calls.iter().all(|(_, came)| matches!(came, CallState::Released))
    }
}

impl Turn {
    /// Starts the tool calls of a recorded reply. The tool runner announces the start and end of each.
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

    /// Returns the error with which the turn must end before another model call, if its tools are the reason.
    pub(super) fn stop_reason(&self) -> Option<Error> {
        let unheeded = || {
            let word = self.tool_budget.cutoff().filter(|_| self.tool_budget.cutoff_ignored)?;
            let failure = Error::new(ErrorKind::Interrupted, word.ignored_message());
            Some(failure.hint("the partial reply was kept; send a message to continue"))
        };
        self.fatal.clone().or_else(unheeded)
    }
}

impl State {
    /// Handles the completion of a tool call.
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
