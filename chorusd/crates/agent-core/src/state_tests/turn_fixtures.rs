//! Events and effects of turns, as the tests need them.

use chorus_base::Ticks;
use chorus_base::error::Error;
use chorus_base::requester::Requester;
use chorus_proto::methods::context::AppendResult;
use chorus_proto::{ErrorKind, Message, NewMessage, Role, ToolCall, Usage};
use chorus_session::stored_message::StoredMessage;
use jiff::Timestamp;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{Fixture, stored};
use crate::effect::{Effect, TurnMarker};
use crate::event::{AgentCommand, AppendOutcome, Event, ToolEnded};
use crate::state::State;
use crate::turn::{EventTime, ModelFailure, ModelReply, OpenTurn, TurnRequest};
use crate::turn_sink::TurnSink;

pub(super) const T1: Uuid = Uuid::from_u128(1001);
pub(super) const T2: Uuid = Uuid::from_u128(1002);
pub(super) const MOMENT: EventTime = EventTime { now: Timestamp::UNIX_EPOCH, ticks: Ticks(5) };

pub(super) fn tool_call(id: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "list_models".into(), params: RawValue::from_string("{}".into()).unwrap() }
}

pub(super) fn model_reply(text: &str, calls: &[&str]) -> Event {
    model_reply_in(T1, 1, text, calls)
}

pub(super) fn model_reply_in(turn: Uuid, step: u32, text: &str, calls: &[&str]) -> Event {
    let calls: Vec<ToolCall> = calls.iter().map(|id| tool_call(id)).collect();
    let message = Message {
        tool_calls: calls.clone(),
        ..NewMessage::text(Role::Assistant, text).complete(|| text.to_owned(), Timestamp::UNIX_EPOCH)
    };
    let message = Some(StoredMessage::new(&message).unwrap());
    let answer = ModelReply {
        message,
        text: text.into(),
        redacted_calls: calls.clone(),
        calls,
        usage: Usage::default(),
        note: None,
    };
    Event::ModelCalled { turn_step: (turn, step), moment: MOMENT, result: Box::new(Ok(answer)) }
}

pub(super) fn model_failure(partial: Option<&str>) -> Event {
    let partial = partial.map(|text| stored(Role::Assistant, text));
    let failure = Error::new(ErrorKind::ModelUnavailable, "it broke");
    let stopped = ModelFailure { failure, partial, usage: Usage::default(), too_long: false };
    Event::ModelCalled { turn_step: (T1, 1), moment: MOMENT, result: Box::new(Err(Box::new(stopped))) }
}

pub(super) fn tool_result(id: &str) -> Event {
    tool_result_in(1, id)
}

pub(super) fn tool_result_in(step: u32, id: &str) -> Event {
    // The ids of calls in these tests are their indices.
    let at = usize::from(id.as_bytes()[0] - b'a');
    tool_ended(step, (at, id), false, None)
}

/// The event that the call at an index has completed; its result is its `id`.
pub(super) fn tool_ended(step: u32, (at, id): (usize, &str), is_error: bool, stop: Option<Error>) -> Event {
    let message = NewMessage { tool_call_id: Some(id.into()), ..NewMessage::text(Role::ToolResult, id) };
    let message = message.complete(|| id.to_owned(), Timestamp::UNIX_EPOCH);
    let result = StoredMessage::new(&message).unwrap();
    let of = (T1, step);
    Event::ToolEnded(Box::new(ToolEnded {
        turn_step: of,
        moment: MOMENT,
        call_index: at,
        result,
        is_error,
        skipped: false,
        fatal: stop,
    }))
}

pub(super) fn append_completed() -> Event {
    Event::Appended(Ok(AppendOutcome::Added(AppendResult {
        appended: 1,
        messages: 1,
        secrets_found: None,
        note: None,
    })))
}

pub(super) fn turn_closed(turn: Uuid) -> Event {
    Event::TurnClosed { turn, moment: MOMENT, result: Ok(()) }
}

impl Fixture {
    pub(super) fn send_message(&mut self, turn: Uuid, key: Option<&str>) -> Vec<Effect> {
        self.send_with_key(turn, key, false)
    }

    pub(super) fn send_with_key(&mut self, turn: Uuid, key: Option<&str>, again: bool) -> Vec<Effect> {
        let message = stored(Role::User, "go");
        let key = key.map(str::to_owned);
        let send = TurnRequest {
            turn,
            message,
            key,
            model: None,
            resume_if_unstarted: again,
            is_repeated: true,
            sink: TurnSink::default(),
            requester: Requester::Owner,
        };
        self.ask(AgentCommand::Send(Box::new(send)))
    }

    /// Sends a message that is not repeated.
    pub(super) fn send_once(&mut self, turn: Uuid) -> Vec<Effect> {
        let send = TurnRequest {
            turn,
            message: stored(Role::User, "go"),
            key: None,
            model: None,
            resume_if_unstarted: false,
            is_repeated: false,
            sink: TurnSink::default(),
            requester: Requester::Owner,
        };
        self.ask(AgentCommand::Send(Box::new(send)))
    }

    /// Simulates that the daemon ended in a turn and has loaded the context again.
    pub(super) fn restart_in_turn(&mut self, turn: Uuid) {
        let context = self.state.context().unwrap().clone();
        let next = u32::try_from(context.messages.len()).unwrap();
        self.state = State::recovered(context, next, Some(OpenTurn { turn, results: Vec::new() }));
    }

    /// Creates a state with a turn that calls its model.
    pub(super) fn in_model_call() -> Self {
        let mut bench = Self::new();
        bench.send_message(T1, None);
        assert!(effect_names(&bench.handle(append_completed())).contains(&"call"));
        bench
    }
}

/// Returns short names of the effects that matter here.
pub(super) fn effect_names(effects: &[Effect]) -> Vec<&'static str> {
    let name = |effect: &Effect| match effect {
        Effect::CallModel(asked) => vec![if asked.final_answer.is_some() { "last call" } else { "call" }],
        Effect::RunTools(run) => {
            let name = |refused| if refused { "no tool" } else { "tool" };
            run.calls.iter().map(|call| name(run.cancelled || call.refusal.is_some())).collect()
        }
        Effect::CancelTurn(_) => vec!["stop"],
        Effect::CloseTurn { .. } => vec!["close"],
        Effect::Append(append) => vec![match append.marker {
            Some(TurnMarker::Open { .. }) => "open",
            Some(TurnMarker::Close { .. }) => "last",
            None => "append",
        }],
        Effect::Reply(_, Ok(_)) => vec!["ok"],
        Effect::Reply(_, Err(_)) => vec!["error"],
        Effect::WriteSession(_) => vec!["write"],
        _ => Vec::new(),
    };
    effects.iter().flat_map(name).collect()
}

/// Returns the only failure among the effects.
pub(super) fn only_error(effects: &[Effect]) -> Error {
    let failure = |effect: &Effect| match effect {
        Effect::Reply(_, Err(failure)) => Some(failure.clone()),
        _ => None,
    };
    effects.iter().find_map(failure).unwrap()
}
