//! Turns: what comes late is dropped, and whatever order things come in, each call has its result behind it.

use chorus_proto::methods::context::AppendResult;
use chorus_proto::{ErrorKind, Message, NewMessage, Role, ToolCall, Usage};
use jiff::Timestamp;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{Bench, replied_to, reply, save, stored};
use crate::agent::effect::{Effect, Mark};
use crate::agent::event::{Event, Journalled, Reply, Verb};
use crate::agent::turn::{Answer, Moment, Send, Stopped};
use crate::agent::voice::Voice;
use crate::clock::Ticks;
use crate::failure::Failure;
use crate::message::Stored;

const T1: Uuid = Uuid::from_u128(1001);
const T2: Uuid = Uuid::from_u128(1002);
const MOMENT: Moment = Moment { now: Timestamp::UNIX_EPOCH, ticks: Ticks(5) };

fn call(id: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "list_models".into(), params: RawValue::from_string("{}".into()).unwrap() }
}

fn said(text: &str, calls: &[&str]) -> Event {
    said_in(T1, 1, text, calls)
}

fn said_in(turn: Uuid, step: u32, text: &str, calls: &[&str]) -> Event {
    let calls: Vec<ToolCall> = calls.iter().map(|id| call(id)).collect();
    let message = Message {
        tool_calls: calls.clone(),
        ..NewMessage::text(Role::Assistant, text).complete(|| text.to_owned(), Timestamp::UNIX_EPOCH)
    };
    let message = Some(Stored::new(&message).unwrap());
    let answer = Answer { message, text: text.into(), calls, usage: Usage::default(), note: None };
    Event::Called { of: (turn, step), moment: MOMENT, result: Box::new(Ok(answer)) }
}

fn cut(partial: Option<&str>) -> Event {
    let partial = partial.map(|text| stored(Role::Assistant, text));
    let failure = Failure::new(ErrorKind::ModelUnavailable, "it broke");
    let stopped = Stopped { failure, partial, usage: Usage::default(), too_long: false };
    Event::Called { of: (T1, 1), moment: MOMENT, result: Box::new(Err(Box::new(stopped))) }
}

fn result(id: &str) -> Event {
    let message = NewMessage { tool_call_id: Some(id.into()), ..NewMessage::text(Role::ToolResult, id) };
    let message = message.complete(|| id.to_owned(), Timestamp::UNIX_EPOCH);
    let result = Stored::new(&message).unwrap();
    Event::ToolEnded { of: (T1, 1), moment: MOMENT, call: id.into(), result, is_error: false }
}

fn kept() -> Event {
    Event::Appended(Ok(Journalled::Now(AppendResult { appended: 1, messages: 1 })))
}

impl Bench {
    fn send(&mut self, turn: Uuid, key: Option<&str>) -> Vec<Effect> {
        let message = stored(Role::User, "go");
        let send = Send { turn, message, key: key.map(str::to_owned), voice: Voice::default() };
        self.ask(Verb::Send(Box::new(send)))
    }

    /// A turn whose model is asked.
    fn asking() -> Self {
        let mut bench = Self::new();
        bench.send(T1, None);
        assert!(names(&bench.handle(kept())).contains(&"call"));
        bench
    }
}

/// The effects that matter here, in short.
fn names(effects: &[Effect]) -> Vec<&'static str> {
    let name = |effect: &Effect| match effect {
        Effect::CallModel(_) => Some("call"),
        Effect::RunTool { cancelled: false, .. } => Some("tool"),
        Effect::RunTool { .. } => Some("no tool"),
        Effect::StopTurn(_) => Some("stop"),
        Effect::CloseTurn { .. } => Some("close"),
        Effect::Append(append) => Some(match append.mark {
            Some(Mark::Open { .. }) => "open",
            Some(Mark::Close { .. }) => "last",
            None => "append",
        }),
        Effect::Reply(_, Ok(_)) => Some("ok"),
        Effect::Reply(_, Err(_)) => Some("error"),
        Effect::Write(_) => Some("write"),
        _ => None,
    };
    effects.iter().filter_map(name).collect()
}

#[test]
fn each_step_is_kept_before_the_next_begins() {
    let mut bench = Bench::new();
    assert_eq!(names(&bench.send(T1, None)), ["open"]);
    assert_eq!(names(&bench.handle(kept())), ["call"]);
    assert_eq!(names(&bench.handle(said("look", &["a", "b"]))), ["append"]);
    assert_eq!(names(&bench.handle(kept())), ["tool", "tool"]);
    assert_eq!(names(&bench.handle(result("b"))), ["append"]);
    assert_eq!(names(&bench.handle(result("a"))), ["append"]);
    assert_eq!(names(&bench.handle(kept())), [""; 0]);
    assert_eq!(names(&bench.handle(kept())), ["call"]);
    assert_eq!(names(&bench.handle(said_in(T1, 2, "done", &[]))), ["last"]);
    assert_eq!(names(&bench.handle(kept())), ["ok"]);
    assert_eq!(bench.texts(), ["go", "look", "b", "a", "done"]);
    assert!(!bench.state.in_turn());
}

#[test]
fn what_comes_late_is_dropped() {
    let mut bench = Bench::asking();
    assert!(bench.handle(said_in(T2, 1, "another turn's", &[])).is_empty());
    assert!(bench.handle(said_in(T1, 2, "another step's", &[])).is_empty());
    assert!(bench.handle(result("a")).is_empty(), "no tool runs");
    bench.handle(said("look", &["a"]));
    assert!(bench.handle(said("said twice", &[])).is_empty());
    bench.handle(kept());
    assert_eq!(names(&bench.handle(result("a"))), ["append"]);
    assert!(bench.handle(result("a")).is_empty(), "a result came twice");
    assert!(bench.handle(result("unknown")).is_empty());
    bench.handle(kept());
    bench.handle(said_in(T1, 2, "done", &[]));
    bench.handle(kept());
    assert!(bench.handle(said_in(T1, 2, "after the end", &[])).is_empty());
    assert_eq!(bench.texts(), ["go", "look", "a", "done"]);
}

#[test]
fn an_append_waits_for_the_results_of_open_calls() {
    let mut bench = Bench::asking();
    bench.handle(said("look", &["a"]));
    assert!(bench.append("between").is_empty());
    bench.handle(kept());
    assert!(bench.append("between too").is_empty());
    bench.handle(result("a"));
    assert_eq!(names(&bench.handle(kept())), ["append", "append", "call"]);
    bench.durable(4);
    bench.durable(5);
    assert_eq!(bench.texts(), ["go", "look", "a", "between", "between too"]);
}

#[test]
fn a_cancelled_turn_keeps_what_came_and_runs_no_tool() {
    let mut bench = Bench::asking();
    assert_eq!(names(&bench.ask(Verb::Cancel(None))), ["stop", "ok"]);
    assert_eq!(names(&bench.handle(cut(Some("half")))), ["last"]);
    assert_eq!(names(&bench.handle(kept())), ["error"]);
    assert_eq!(bench.texts(), ["go", "half"]);
    // Cancelled while the calls are on their way into the journal.
    let mut bench = Bench::asking();
    bench.handle(said("look", &["a"]));
    bench.ask(Verb::Cancel(Some(T1)));
    assert_eq!(names(&bench.handle(kept())), ["no tool"]);
    bench.handle(result("a"));
    assert_eq!(names(&bench.handle(kept())), ["close"]);
    assert_eq!(names(&bench.handle(Event::TurnClosed(Ok(())))), ["error"]);
    // Another turn's number ends nothing.
    let mut bench = Bench::asking();
    assert!(matches!(reply(bench.ask(Verb::Cancel(Some(T2)))), Ok(Reply::Cancelled(None))));
}

#[test]
fn turns_wait_for_each_other_and_one_key_is_one_turn() {
    let mut bench = Bench::new();
    bench.send(T1, Some("k"));
    bench.handle(kept());
    assert!(names(&bench.send(T2, None)).is_empty());
    assert!(names(&bench.send(Uuid::from_u128(9), Some("k"))).is_empty());
    bench.handle(said("done", &[]));
    let effects = bench.handle(kept());
    assert_eq!(replied_to(&effects), [1, 3], "both who sent with the key");
    assert_eq!(names(&effects), ["ok", "ok", "open"]);
    // The one that waits may be ended, too.
    bench.send(T1, None);
    assert_eq!(names(&bench.ask(Verb::Cancel(Some(T1)))), ["error", "ok"]);
}

#[test]
fn a_save_beside_a_turn_loses_nothing_of_either() {
    let mut bench = Bench::asking();
    let draft = super::draft(bench.ask(save()));
    assert_eq!(draft.totals.messages, 1);
    assert!(bench.handle(said("done", &[])).is_empty(), "what is written has a copy of the context");
    assert_eq!(names(&bench.written(&draft)), ["ok", "last"]);
    assert_eq!(names(&bench.handle(kept())), ["ok"]);
    assert_eq!(bench.texts(), ["go", "done"]);
    assert_eq!(bench.state.context().unwrap().unsaved(), 1);
}

#[test]
fn a_journal_that_fails_ends_the_turn_and_leaves_no_trace_in_memory() {
    let mut bench = Bench::asking();
    bench.handle(said("lost", &[]));
    let failed = Event::Appended(Err(Failure::busy()));
    assert_eq!(names(&bench.handle(failed)), ["error"]);
    assert_eq!(bench.texts(), ["go"]);
    assert!(!bench.state.in_turn());
}

#[test]
fn an_idle_timer_does_nothing_in_a_turn() {
    let mut bench = Bench::asking();
    let due = bench.state.context().unwrap().deadline.unwrap().due;
    assert!(matches!(reply(bench.ask(Verb::Idle { due })), Ok(Reply::PutAway(None))));
    assert!(bench.state.in_turn());
}
