//! The end of a turn: its record in the journal, and the replies to all who wait for it.

use chorus_base::error::Result;
use chorus_proto::EventType;
use chorus_proto::methods::send::SendResult;
use chorus_session::stored_message::StoredMessage;
use serde_json::json;
use uuid::Uuid;

use super::effect::{Effect, TurnMarker};
use super::event::CommandOutcome;
use super::state::{State, deadline_after};
use super::turn::{EventTime, TurnPhase};

impl State {
    /// Records the end of the turn, with the final message if there is one.
    pub(super) fn close_turn(
        &mut self,
        last: Option<(StoredMessage, EventTime)>,
        outcome: Result<String>,
        effects: &mut Vec<Effect>,
    ) {
        let waits = self.turn.as_ref().is_some_and(|turn| self.may_resume(turn, &outcome));
        let Some(turn) = &mut self.turn else { return };
        if last.is_none() && waits {
            // It stays open in the journal, so that another daemon may resume it, too.
            return self.finish_turn(outcome, effects);
        }
        let id = turn.id;
        let answer = outcome.as_ref().ok().map(|reply| SendResult {
            reply: reply.clone(),
            turn_id: id,
            usage: turn.usage.clone(),
            tool_calls: turn.calls.clone(),
        });
        let mark = TurnMarker::Close { turn: id, key: turn.key.clone(), answer: answer.map(Box::new) };
        turn.phase = TurnPhase::RecordingEnd(Box::new(outcome));
        match (last, self.context.as_ref().map(|context| context.number)) {
            (Some((message, moment)), _) => self.append_to_context(message, moment, Some(mark), effects),
            (None, Some(context)) => effects.push(Effect::CloseTurn { context, marker: mark }),
            (None, None) => self.on_turn_appended(id, Ok(None), effects),
        }
    }

    /// Handles the record of the end of a turn that added no final message.
    pub(super) fn on_turn_closed(
        &mut self,
        of: Uuid,
        moment: EventTime,
        result: Result<()>,
        effects: &mut Vec<Effect>,
    ) {
        let ended = self.turn.as_ref().filter(|turn| turn.id == of && result.is_ok());
        if let Some((settings, context)) = ended.map(|turn| turn.settings.clone()).zip(self.context.as_mut()) {
            // No message has set the idle timer, and it may have fired without effect during the turn.
            context.deadline = deadline_after(&settings, moment);
            effects.push(Effect::SetDeadline { context: context.number, deadline: context.deadline });
        }
        self.on_turn_appended(of, result.map(|()| None), effects);
    }

    /// Ends the turn and replies to all requests that wait for it.
    pub(super) fn finish_turn(&mut self, outcome: Result<String>, effects: &mut Vec<Effect>) {
        let Some(turn) = self.turn.take() else { return };
        let id = turn.id;
        let outcome = match turn.interruption {
            Some(why) => why.outcome_without_record(outcome),
            None => outcome,
        };
        self.record_answered(turn.first_message.unwrap_or(0), outcome.is_ok());
        self.let_resume_if_unstarted(&turn, &outcome);
        if matches!(turn.phase, TurnPhase::RunningTools(_)) {
            // The results of running tools are no longer needed.
            effects.push(Effect::CancelTurn(id));
        }
        let result = match outcome {
            Ok(reply) => {
                effects.push(Effect::EmitEvent(EventType::TurnFinished, json!({"turn_id": id, "usage": turn.usage})));
                Ok(SendResult { reply, turn_id: id, usage: turn.usage, tool_calls: turn.calls })
            }
            Err(failure) => {
                let data = json!({"turn_id": id, "reason": failure.message});
                effects.push(Effect::EmitEvent(EventType::TurnInterrupted, data));
                Err(failure)
            }
        };
        for request in turn.waiting_requests {
            effects.push(Effect::Reply(request, result.clone().map(|result| CommandOutcome::Sent(Box::new(result)))));
        }
        self.resume_parked(effects);
    }
}
