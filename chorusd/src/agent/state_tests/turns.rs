//! Turns: what comes late is dropped, and whatever order things come in, each call has its result behind it.

use chorus_proto::methods::context::AppendResult;
use chorus_proto::methods::send::Said;
use chorus_proto::{ErrorKind, Message, NewMessage, Receipt, Role, ToolCall, Trigger, Usage};
use jiff::Timestamp;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{Bench, replied_to, reply, save, stored};
use crate::agent::again::has_ended;
use crate::agent::allowance::MAX_CALLS;
use crate::agent::compaction::{Compaction, Derived};
use crate::agent::effect::{Effect, Mark};
use crate::agent::event::{Event, Journalled, Known, Reply, RequestId, ToolEnded, Verb};
use crate::agent::state::State;
use crate::agent::turn::{Answer, LeftOpen, Moment, Send, Stopped};
use crate::agent::voice::Voice;
use crate::clock::Ticks;
use crate::failure::Failure;
use crate::message::Stored;
use crate::who::Requester;

pub(super) const T1: Uuid = Uuid::from_u128(1001);
const T2: Uuid = Uuid::from_u128(1002);
pub(super) const MOMENT: Moment = Moment { now: Timestamp::UNIX_EPOCH, ticks: Ticks(5) };

fn call(id: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "list_models".into(), params: RawValue::from_string("{}".into()).unwrap() }
}

fn said(text: &str, calls: &[&str]) -> Event {
    said_in(T1, 1, text, calls)
}

pub(super) fn said_in(turn: Uuid, step: u32, text: &str, calls: &[&str]) -> Event {
    let calls: Vec<ToolCall> = calls.iter().map(|id| call(id)).collect();
    let message = Message {
        tool_calls: calls.clone(),
        ..NewMessage::text(Role::Assistant, text).complete(|| text.to_owned(), Timestamp::UNIX_EPOCH)
    };
    let message = Some(Stored::new(&message).unwrap());
    let answer = Answer { message, text: text.into(), kept: calls.clone(), calls, usage: Usage::default(), note: None };
    Event::Called { of: (turn, step), moment: MOMENT, result: Box::new(Ok(answer)) }
}

fn cut(partial: Option<&str>) -> Event {
    let partial = partial.map(|text| stored(Role::Assistant, text));
    let failure = Failure::new(ErrorKind::ModelUnavailable, "it broke");
    let stopped = Stopped { failure, partial, usage: Usage::default(), too_long: false };
    Event::Called { of: (T1, 1), moment: MOMENT, result: Box::new(Err(Box::new(stopped))) }
}

fn result(id: &str) -> Event {
    result_in(1, id)
}

fn result_in(step: u32, id: &str) -> Event {
    // Calls of these tests are named in their order.
    let at = usize::from(id.as_bytes()[0] - b'a');
    ended(step, (at, id), false, None)
}

/// The call at a place has ended; what it said is its `id`.
pub(super) fn ended(step: u32, (at, id): (usize, &str), is_error: bool, stop: Option<Failure>) -> Event {
    let message = NewMessage { tool_call_id: Some(id.into()), ..NewMessage::text(Role::ToolResult, id) };
    let message = message.complete(|| id.to_owned(), Timestamp::UNIX_EPOCH);
    let result = Stored::new(&message).unwrap();
    let of = (T1, step);
    Event::ToolEnded(Box::new(ToolEnded { of, moment: MOMENT, at, result, is_error, skipped: false, stop }))
}

pub(super) fn kept() -> Event {
    Event::Appended(Ok(Journalled::Now(AppendResult { appended: 1, messages: 1, secrets_found: None })))
}

pub(super) fn closed(turn: Uuid) -> Event {
    Event::TurnClosed { turn, moment: MOMENT, result: Ok(()) }
}

impl Bench {
    pub(super) fn send(&mut self, turn: Uuid, key: Option<&str>) -> Vec<Effect> {
        self.send_as(turn, key, false)
    }

    fn send_as(&mut self, turn: Uuid, key: Option<&str>, again: bool) -> Vec<Effect> {
        let message = stored(Role::User, "go");
        let key = key.map(str::to_owned);
        let send = Send { turn, message, key, again, voice: Voice::default(), by: Requester::Owner };
        self.ask(Verb::Send(Box::new(send)))
    }

    /// The daemon ended in a turn, and has read it back.
    fn crash(&mut self, turn: Uuid) {
        let context = self.state.context().unwrap().clone();
        let next = u32::try_from(context.messages.len()).unwrap();
        self.state = State::recovered(context, next, Some(LeftOpen { turn, results: Vec::new() }));
    }

    /// A turn whose model is asked.
    pub(super) fn asking() -> Self {
        let mut bench = Self::new();
        bench.send(T1, None);
        assert!(names(&bench.handle(kept())).contains(&"call"));
        bench
    }
}

/// The effects that matter here, in short.
pub(super) fn names(effects: &[Effect]) -> Vec<&'static str> {
    let name = |effect: &Effect| match effect {
        Effect::CallModel(asked) => vec![if asked.last_word.is_some() { "last call" } else { "call" }],
        Effect::RunTools(run) => {
            let name = |refused| if refused { "no tool" } else { "tool" };
            run.calls.iter().map(|call| name(run.cancelled || call.refused.is_some())).collect()
        }
        Effect::StopTurn(_) => vec!["stop"],
        Effect::CloseTurn { .. } => vec!["close"],
        Effect::Append(append) => vec![match append.mark {
            Some(Mark::Open { .. }) => "open",
            Some(Mark::Close { .. }) => "last",
            None => "append",
        }],
        Effect::Reply(_, Ok(_)) => vec!["ok"],
        Effect::Reply(_, Err(_)) => vec!["error"],
        Effect::Write(_) => vec!["write"],
        _ => Vec::new(),
    };
    effects.iter().flat_map(name).collect()
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
    assert_eq!(names(&bench.handle(closed(T1))), ["error"]);
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
    assert!(matches!(reply(bench.ask(Verb::Idle { due })), Ok(Reply::InTurn)));
    assert!(bench.state.in_turn());
}

/// What is told of a turn to one who waits for it.
fn said_to(effects: &[Effect], request: u64) -> Vec<Said> {
    let of = |effect: &Effect| match effect {
        Effect::Say(to, said) if *to == request => Some(said.clone()),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

#[test]
fn who_waits_knows_the_turn_and_takes_it_back_without_a_trace() {
    let mut bench = Bench::asking();
    let waits = |before| [Said::Queued { before, turn_id: Some(T2) }];
    assert_eq!(said_to(&bench.send(T2, Some("k")), 2), waits(1));
    assert_eq!(said_to(&bench.send(Uuid::from_u128(9), Some("k")), 3), waits(1), "the same message");
    let effects = bench.ask(Verb::Cancel(Some(T2)));
    assert_eq!(replied_to(&effects), [2, 3, 4]);
    assert!(matches!(&effects[0], Effect::Reply(_, Err(failure)) if failure.message.contains("taken back")));
    assert!(matches!(effects.last(), Some(Effect::Reply(4, Ok(Reply::Cancelled(Some(T2)))))));
    assert!(bench.state.in_turn(), "the one that runs goes on");
    bench.handle(said("done", &[]));
    assert_eq!(names(&bench.handle(kept())), ["ok"]);
    assert_eq!(bench.texts(), ["go", "done"]);
}

#[test]
fn who_comes_with_the_key_of_a_turn_that_runs_knows_it_and_hears_whole_answers() {
    let joins = |effects: &[Effect]| effects.iter().filter(|effect| matches!(effect, Effect::Join(_))).count();
    let mut bench = Bench::new();
    bench.send(T1, Some("k"));
    let effects = bench.send(T2, Some("k"));
    assert_eq!((said_to(&effects, 2).len(), joins(&effects)), (0, 1), "it hears of the beginning with all others");
    bench.handle(kept());
    let effects = bench.send(T2, Some("k"));
    assert_eq!((said_to(&effects, 3), joins(&effects)), (vec![Said::Started { turn_id: T1 }], 0));
    assert_eq!(joins(&bench.handle(said("look", &["a"]))), 1, "what its tools ask, and the next answer");
    bench.handle(kept());
    // Who waits for the turn to end hears what it asks.
    let waits = |effects: &[Effect]| -> Vec<RequestId> {
        let of = |effect: &Effect| if let Effect::Wait(request) = effect { Some(*request) } else { None };
        effects.iter().filter_map(of).collect()
    };
    assert_eq!(waits(&bench.send(Uuid::from_u128(8), None)), [4]);
    assert_eq!(waits(&bench.send(Uuid::from_u128(9), None)), [5]);
    bench.handle(result("a"));
    assert_eq!(joins(&bench.handle(kept())), 0, "once is enough");
}

#[test]
fn what_belongs_to_a_turn_that_is_over_changes_nothing_in_the_next() {
    let mut bench = Bench::asking();
    bench.send(T2, None);
    bench.handle(said("look", &["a", "b"]));
    bench.handle(kept());
    bench.handle(result("a"));
    bench.handle(result("b"));
    // The disk is full for the first result, and not any more for the second.
    let failed = Event::Appended(Err(Failure::disk_full()));
    assert_eq!(names(&bench.handle(failed)), ["stop", "error", "open"]);
    assert!(names(&bench.handle(kept())).is_empty(), "the message of the next turn is not durable yet");
    assert!(names(&bench.handle(closed(T1))).is_empty());
    assert_eq!(names(&bench.handle(kept())), ["call"]);
}

/// The one failure among the effects.
pub(super) fn failed(effects: &[Effect]) -> Failure {
    let failure = |effect: &Effect| match effect {
        Effect::Reply(_, Err(failure)) => Some(failure.clone()),
        _ => None,
    };
    effects.iter().find_map(failure).unwrap()
}

#[test]
fn what_ends_a_turn_and_those_that_wait_says_why() {
    let put_away = |trigger| Verb::PutAway { trigger, end: false };
    for (verb, middle, before) in [
        (put_away(Trigger::Shutdown), "daemon was stopped", (ErrorKind::Stopping, "daemon is stopping")),
        (put_away(Trigger::Destroy), "agent was destroyed", (ErrorKind::AgentNotFound, "agent was destroyed")),
        (Verb::Hold { goes: true }, "agent was destroyed", (ErrorKind::AgentNotFound, "agent was destroyed")),
    ] {
        let mut bench = Bench::asking();
        bench.send(T2, None);
        let effects = bench.ask(verb);
        assert_eq!(names(&effects), ["stop", "error"]);
        let waited = failed(&effects);
        assert!((waited.kind, waited.message.contains(before.1)) == (before.0, true), "{waited:?}");
        bench.handle(cut(Some("half")));
        let ran = failed(&bench.handle(kept()));
        assert!(ran.kind == ErrorKind::Interrupted && ran.message.contains(middle), "{ran:?}");
    }
    // A rename waits for nobody: it would take the place away from under the turn.
    let mut bench = Bench::asking();
    assert_eq!(reply(bench.ask(Verb::Hold { goes: false })).unwrap_err().kind, ErrorKind::Busy);
    assert!(bench.state.in_turn());
}

#[test]
fn a_turn_that_ends_without_a_word_sets_the_timer_too() {
    let mut bench = Bench::asking();
    let due = bench.state.context().unwrap().deadline.unwrap().due;
    bench.handle(cut(None));
    let effects = bench.handle(closed(T1));
    let set = effects.iter().any(|effect| matches!(effect, Effect::Deadline { deadline: Some(_), .. }));
    assert!(set, "{effects:?}");
    assert!(bench.state.context().unwrap().deadline.unwrap().due > due);
}

#[test]
fn a_turn_that_ends_beside_a_pin_sets_the_timer_too() {
    let mut bench = Bench::asking();
    let due = bench.state.context().unwrap().deadline.unwrap().due;
    bench.handle(cut(None));
    let pinning = bench.ask(Verb::Pin { id: "p".into(), text: "a fact".into() });
    assert!(matches!(pinning[..], [Effect::Change(_)]), "{pinning:?}");
    bench.handle(closed(T1));
    bench.handle(Event::Changed(Ok(())));
    let context = bench.state.context().unwrap();
    assert!(context.deadline.unwrap().due > due && context.pins() == 1);
    assert!(!bench.state.in_turn());
}

#[test]
fn a_compaction_is_no_call_of_the_model() {
    let mut bench = Bench::asking();
    for n in 1..=MAX_CALLS {
        let step = 2 * n - 1;
        let compaction = Box::new(Compaction { upto: 0, derived: Derived::default(), receipt: Receipt::default() });
        bench.handle(Event::Compacted { of: (T1, step), moment: MOMENT, compaction });
        assert_eq!(names(&bench.handle(Event::Appended(Ok(Journalled::Noted)))), ["call"]);
        bench.handle(said_in(T1, step + 1, "look", &["a"]));
        bench.handle(kept());
        bench.handle(result_in(step + 1, "a"));
        let next = if n == MAX_CALLS { "last call" } else { "call" };
        assert_eq!(names(&bench.handle(kept())), [next], "after call {n}");
    }
}

#[test]
fn a_turn_that_is_cut_off_is_not_compacted() {
    let mut bench = Bench::asking();
    assert_eq!(names(&bench.ask(Verb::EndTurns)), ["stop", "ok"]);
    let compaction = Box::new(Compaction { upto: 1, derived: Derived::default(), receipt: Receipt::default() });
    let late = bench.handle(Event::Compacted { of: (T1, 1), moment: MOMENT, compaction });
    assert!(!late.iter().any(|effect| matches!(effect, Effect::Compact { .. })), "{late:?}");
    let told = failed(&bench.handle(closed(T1)));
    assert!(told.message.contains("the daemon was stopped"), "{told:?}");
    assert_eq!((bench.state.in_turn(), bench.state.context().unwrap().view()), (false, 0));
}

#[test]
fn who_asks_whether_a_context_is_free_hears_of_a_turn() {
    let mut bench = Bench::asking();
    assert_eq!(reply(bench.ask(Verb::IsFree)).unwrap_err().kind, ErrorKind::Busy);
    assert!(matches!(reply(Bench::new().ask(Verb::IsFree)), Ok(Reply::Done)));
}

#[test]
fn an_answer_that_was_heard_in_part_is_not_asked_for_again_in_short() {
    let mut bench = Bench::asking();
    let failure = Failure::new(ErrorKind::Interrupted, "too long");
    let partial = Some(stored(Role::Assistant, "half"));
    let stopped = Stopped { failure, partial, usage: Usage::default(), too_long: true };
    let ended = Event::Called { of: (T1, 1), moment: MOMENT, result: Box::new(Err(Box::new(stopped))) };
    assert_eq!(names(&bench.handle(ended)), ["last"]);
}

#[test]
fn counts_that_no_provider_can_mean_are_added_all_the_same() {
    let mut bench = Bench::asking();
    for step in 1..3 {
        let usage = Usage { input_tokens: Some(u64::MAX), ..Usage::default() };
        let answer = Answer {
            message: Some(stored(Role::Assistant, "look")),
            text: String::new(),
            calls: vec![call("a")],
            kept: vec![call("a")],
            usage,
            note: None,
        };
        bench.handle(Event::Called { of: (T1, step), moment: MOMENT, result: Box::new(Ok(answer)) });
        bench.handle(kept());
        let result = stored(Role::ToolResult, "result");
        let of = (T1, step);
        let ended = ToolEnded { of, moment: MOMENT, at: 0, result, is_error: false, skipped: false, stop: None };
        bench.handle(Event::ToolEnded(Box::new(ended)));
        bench.handle(kept());
    }
    bench.handle(said_in(T1, 3, "done", &[]));
    assert_eq!(names(&bench.handle(kept())), ["ok"]);
}

#[test]
fn a_stop_ends_the_turn_that_runs_and_those_that_wait_and_leaves_the_context() {
    let mut bench = Bench::asking();
    bench.send(T2, None);
    assert_eq!(names(&bench.ask(Verb::EndTurns)), ["stop", "error", "ok"]);
    assert_eq!(names(&bench.handle(cut(Some("half")))), ["last"]);
    let told = failed(&bench.handle(kept()));
    assert!(told.message.contains("the daemon was stopped"), "{told:?}");
    assert_eq!(names(&bench.ask(Verb::EndTurns)), ["ok"]);
    assert_eq!(bench.texts(), ["go", "half"]);
}

#[test]
fn a_turn_that_begins_again_is_open_in_the_journal_and_fails_in_its_own_words() {
    let known = || Event::Appended(Ok(Journalled::Known(Known { turn: T1, answer: None })));
    let mut bench = Bench::new();
    bench.send(T1, Some("k"));
    bench.handle(kept());
    bench.crash(T1);
    assert_eq!(names(&bench.send_as(T2, Some("k"), true)), ["close", "open"]);
    let effects = bench.handle(known());
    let [Effect::Append(append)] = &effects[..] else { panic!("{effects:?}") };
    assert!(matches!(&append.mark, Some(Mark::Open { turn: T2, key: None })), "{append:?}");
    assert!(append.messages.is_empty());
    // What comes between is none of it.
    assert_eq!(names(&bench.append("meanwhile")), ["append"]);
    let effects = bench.handle(kept());
    let asked =
        effects.iter().find_map(|effect| if let Effect::CallModel(asked) = effect { Some(asked) } else { None });
    assert_eq!(asked.unwrap().opened, 0);
    bench.durable(2);
    bench.ask(Verb::Cancel(None));
    let Event::Called { moment, result, .. } = cut(Some("half")) else { panic!() };
    bench.handle(Event::Called { of: (T2, 1), moment, result });
    assert!(!has_ended(&failed(&bench.handle(kept()))), "it was cancelled");
    // Once.
    bench.crash(T2);
    bench.send_as(Uuid::from_u128(9), Some("k"), true);
    assert!(has_ended(&failed(&bench.handle(known()))));
}

#[test]
fn a_model_waits_for_tools() {
    let mut bench = Bench::asking();
    assert!(bench.state.calls_model());
    bench.handle(said("look", &["a"]));
    bench.handle(kept());
    assert!(bench.state.in_turn() && !bench.state.calls_model());
    bench.handle(result("a"));
    bench.handle(kept());
    assert!(bench.state.calls_model());
}
