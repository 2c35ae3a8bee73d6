//! The calls of one answer: which of them are carried out, and what comes of each. Part of the state machine.

use std::mem;

use chorus_proto::methods::send::Said;
use chorus_proto::{ErrorKind, EventType};
use serde_json::json;

use super::effect::{Effect, Planned, RunTools};
use super::event::ToolEnded;
use super::state::State;
use super::turn::{Phase, Turn};
use crate::failure::Failure;
use crate::message::Stored;

/// Characters of an error that observers are told.
const TOLD: usize = 300;

impl Turn {
    /// What the model said is in the journal: its tools are called.
    pub(super) fn run_tools(&mut self, effects: &mut Vec<Effect>) {
        let Phase::Keeping(calls) = &mut self.phase else { return };
        let running = mem::take(calls);
        let id = self.id;
        for call in &running {
            let data = json!({"turn_id": id, "id": call.id, "name": call.name});
            effects.push(Effect::Tell(EventType::ToolStarted, data));
            effects.push(Effect::SayAll(Said::Tool { id: call.id.clone(), name: call.name.clone() }));
        }
        let calls = running.iter().map(|call| Planned { call: call.clone(), refused: self.allowance.take() }).collect();
        effects.push(Effect::RunTools(Box::new(RunTools {
            turn: id,
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
        let ended = running.remove(at);
        *kept += 1;
        turn.allowance.ended(is_error);
        if turn.stop.is_none() {
            turn.stop = stop;
        }
        let mut data = json!({"turn_id": id, "id": ended.id, "name": ended.name, "is_error": is_error});
        if let Some(error) = is_error.then(|| error_of(&result)).flatten() {
            data["error"] = error.into();
        }
        effects.push(Effect::Tell(EventType::ToolFinished, data));
        effects.push(Effect::SayAll(Said::Result { id: ended.id, name: ended.name, is_error }));
        self.keep_on(result, moment, None, effects);
    }
}

/// The beginning of what a result says went wrong.
fn error_of(result: &Stored) -> Option<String> {
    let message = result.to_message().ok()?;
    Some(message.content.lines().find(|line| !line.trim().is_empty())?.chars().take(TOLD).collect())
}
