//! Tests of turns: late events are dropped and, in whatever order events come, each call is followed by its result.

use super::turn_fixtures::*;
use chorus_base::error::Error;
use chorus_proto::methods::send::TurnEvent;
use chorus_proto::{ErrorKind, Item, ItemSource, Receipt, Role, Trigger, Usage};
use chorus_session::notes::{NoteEdit, NoteList, NoteRef};
use uuid::Uuid;

use super::{Fixture, add_note, only_reply, pin, replied_to, save_command, stored};
use crate::compaction::{Compaction, DerivedState};
use crate::effect::Effect;
use crate::event::{AgentCommand, AppendOutcome, CommandOutcome, Event, RequestId, ToolEnded};
use crate::interruption_reason::Interruption;
use crate::tool_budget::MAX_CALLS;
use crate::turn::{ModelFailure, ModelReply};

#[test]
fn each_step_is_kept_before_the_next_begins() {
    let mut bench = Fixture::new();
    assert_eq!(effect_names(&bench.send_message(T1, None)), ["open"]);
    assert_eq!(effect_names(&bench.handle(append_completed())), ["call"]);
    assert_eq!(effect_names(&bench.handle(model_reply("look", &["a", "b"]))), ["append"]);
    assert_eq!(effect_names(&bench.handle(append_completed())), ["tool", "tool"]);
    assert_eq!(effect_names(&bench.handle(tool_result("b"))), ["append"]);
    assert_eq!(effect_names(&bench.handle(tool_result("a"))), ["append"]);
    assert_eq!(effect_names(&bench.handle(append_completed())), [""; 0]);
    assert_eq!(effect_names(&bench.handle(append_completed())), ["call"]);
    assert_eq!(effect_names(&bench.handle(model_reply_in(T1, 2, "done", &[]))), ["last"]);
    assert_eq!(effect_names(&bench.handle(append_completed())), ["ok"]);
    assert_eq!(bench.texts(), ["go", "look", "b", "a", "done"]);
    assert!(!bench.state.is_in_turn());
}

#[test]
fn what_comes_late_is_dropped() {
    let mut bench = Fixture::in_model_call();
    assert!(bench.handle(model_reply_in(T2, 1, "another turn's", &[])).is_empty());
    assert!(bench.handle(model_reply_in(T1, 2, "another step's", &[])).is_empty());
    assert!(bench.handle(tool_result("a")).is_empty(), "no tool runs");
    bench.handle(model_reply("look", &["a"]));
    assert!(bench.handle(model_reply("said twice", &[])).is_empty());
    bench.handle(append_completed());
    assert_eq!(effect_names(&bench.handle(tool_result("a"))), ["append"]);
    assert!(bench.handle(tool_result("a")).is_empty(), "a result came twice");
    assert!(bench.handle(tool_result("unknown")).is_empty());
    bench.handle(append_completed());
    bench.handle(model_reply_in(T1, 2, "done", &[]));
    bench.handle(append_completed());
    assert!(bench.handle(model_reply_in(T1, 2, "after the end", &[])).is_empty());
    assert_eq!(bench.texts(), ["go", "look", "a", "done"]);
}

#[test]
fn an_append_waits_for_the_results_of_open_calls() {
    let mut bench = Fixture::in_model_call();
    bench.handle(model_reply("look", &["a"]));
    assert!(bench.append("between").is_empty());
    bench.handle(append_completed());
    assert!(bench.append("between too").is_empty());
    bench.handle(tool_result("a"));
    assert_eq!(effect_names(&bench.handle(append_completed())), ["append", "append", "call"]);
    bench.complete_append(4);
    bench.complete_append(5);
    assert_eq!(bench.texts(), ["go", "look", "a", "between", "between too"]);
}

#[test]
fn a_cancelled_turn_keeps_what_came_and_runs_no_tool() {
    let mut bench = Fixture::in_model_call();
    assert_eq!(effect_names(&bench.ask(AgentCommand::Cancel(None))), ["stop", "ok"]);
    assert_eq!(effect_names(&bench.handle(model_failure(Some("half")))), ["last"]);
    assert_eq!(effect_names(&bench.handle(append_completed())), ["error"]);
    assert_eq!(bench.texts(), ["go", "half"]);
    // Cancelled while the reply with the calls is being recorded.
    let mut bench = Fixture::in_model_call();
    bench.handle(model_reply("look", &["a"]));
    bench.ask(AgentCommand::Cancel(Some(T1)));
    assert_eq!(effect_names(&bench.handle(append_completed())), ["no tool"]);
    bench.handle(tool_result("a"));
    assert_eq!(effect_names(&bench.handle(append_completed())), ["close"]);
    assert_eq!(effect_names(&bench.handle(turn_closed(T1))), ["error"]);
    // The id of another turn cancels nothing.
    let mut bench = Fixture::in_model_call();
    assert!(matches!(only_reply(bench.ask(AgentCommand::Cancel(Some(T2)))), Ok(CommandOutcome::Cancelled(None))));
}

#[test]
fn turns_wait_for_each_other_and_one_key_is_one_turn() {
    let mut bench = Fixture::new();
    bench.send_message(T1, Some("k"));
    bench.handle(append_completed());
    assert!(effect_names(&bench.send_message(T2, None)).is_empty());
    assert!(effect_names(&bench.send_message(Uuid::from_u128(9), Some("k"))).is_empty());
    bench.handle(model_reply("done", &[]));
    let effects = bench.handle(append_completed());
    assert_eq!(replied_to(&effects), [1, 3], "both who sent with the key");
    assert_eq!(effect_names(&effects), ["ok", "ok", "open"]);
    // A queued turn can be cancelled, too.
    bench.send_message(T1, None);
    assert_eq!(effect_names(&bench.ask(AgentCommand::Cancel(Some(T1)))), ["error", "ok"]);
}

#[test]
fn a_save_beside_a_turn_loses_nothing_of_either() {
    let mut bench = Fixture::in_model_call();
    let draft = super::only_draft(bench.ask(save_command()));
    assert_eq!(draft.totals.messages, 1);
    assert!(bench.handle(model_reply("done", &[])).is_empty(), "what is written has a copy of the context");
    assert_eq!(effect_names(&bench.complete_write(&draft)), ["ok", "last"]);
    assert_eq!(effect_names(&bench.handle(append_completed())), ["ok"]);
    assert_eq!(bench.texts(), ["go", "done"]);
    assert_eq!(bench.state.context().unwrap().unsaved(), 1);
}

#[test]
fn a_journal_that_fails_ends_the_turn_and_leaves_no_trace_in_memory() {
    let mut bench = Fixture::in_model_call();
    bench.handle(model_reply("lost", &[]));
    let failed = Event::Appended(Err(Error::busy()));
    assert_eq!(effect_names(&bench.handle(failed)), ["error"]);
    assert_eq!(bench.texts(), ["go"]);
    assert!(!bench.state.is_in_turn());
}

#[test]
fn an_idle_timer_does_nothing_in_a_turn() {
    let mut bench = Fixture::in_model_call();
    let due = bench.state.context().unwrap().deadline.unwrap().due;
    assert!(matches!(only_reply(bench.ask(AgentCommand::Expire { due })), Ok(CommandOutcome::TurnRunning)));
    assert!(bench.state.is_in_turn());
}

/// Returns the events that are sent to a waiting request.
fn events_sent_to(effects: &[Effect], request: u64) -> Vec<TurnEvent> {
    let of = |effect: &Effect| match effect {
        Effect::SendTo(to, said) if *to == request => Some(said.clone()),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

#[test]
fn who_waits_knows_the_turn_and_takes_it_back_without_a_trace() {
    let mut bench = Fixture::in_model_call();
    let waits = |before| [TurnEvent::Queued { before, turn_id: Some(T2) }];
    assert_eq!(events_sent_to(&bench.send_message(T2, Some("k")), 2), waits(1));
    assert_eq!(events_sent_to(&bench.send_message(Uuid::from_u128(9), Some("k")), 3), waits(1), "the same message");
    let effects = bench.ask(AgentCommand::Cancel(Some(T2)));
    assert_eq!(replied_to(&effects), [2, 3, 4]);
    assert!(matches!(&effects[0], Effect::Reply(_, Err(failure)) if failure.message.contains("cancelled before")));
    assert!(matches!(effects.last(), Some(Effect::Reply(4, Ok(CommandOutcome::Cancelled(Some(T2)))))));
    assert!(bench.state.is_in_turn(), "the one that runs goes on");
    bench.handle(model_reply("done", &[]));
    assert_eq!(effect_names(&bench.handle(append_completed())), ["ok"]);
    assert_eq!(bench.texts(), ["go", "done"]);
}

#[test]
fn who_comes_with_the_key_of_a_turn_that_runs_knows_it_and_hears_whole_answers() {
    let joins = |effects: &[Effect]| effects.iter().filter(|effect| matches!(effect, Effect::AddListener(_))).count();
    let mut bench = Fixture::new();
    bench.send_message(T1, Some("k"));
    let effects = bench.send_message(T2, Some("k"));
    assert_eq!(
        (events_sent_to(&effects, 2).len(), joins(&effects)),
        (0, 1),
        "it hears of the beginning with all others"
    );
    bench.handle(append_completed());
    let effects = bench.send_message(T2, Some("k"));
    assert_eq!((events_sent_to(&effects, 3), joins(&effects)), (vec![TurnEvent::Started { turn_id: T1 }], 0));
    assert_eq!(joins(&bench.handle(model_reply("look", &["a"]))), 1, "what its tools ask, and the next answer");
    bench.handle(append_completed());
    // A request that waits for the turn to end receives its approval questions.
    let waits = |effects: &[Effect]| -> Vec<RequestId> {
        let of =
            |effect: &Effect| if let Effect::AddApprovalListener(request) = effect { Some(*request) } else { None };
        effects.iter().filter_map(of).collect()
    };
    assert_eq!(waits(&bench.send_message(Uuid::from_u128(8), None)), [4]);
    assert_eq!(waits(&bench.send_message(Uuid::from_u128(9), None)), [5]);
    bench.handle(tool_result("a"));
    assert_eq!(joins(&bench.handle(append_completed())), 0, "once is enough");
}

#[test]
fn what_belongs_to_a_turn_that_is_over_changes_nothing_in_the_next() {
    let mut bench = Fixture::in_model_call();
    bench.send_message(T2, None);
    bench.handle(model_reply("look", &["a", "b"]));
    bench.handle(append_completed());
    bench.handle(tool_result("a"));
    bench.handle(tool_result("b"));
    // The disk is full for the first result, and no longer for the second.
    let failed = Event::Appended(Err(Error::disk_full()));
    assert_eq!(effect_names(&bench.handle(failed)), ["stop", "error", "open"]);
    assert!(
        effect_names(&bench.handle(append_completed())).is_empty(),
        "the message of the next turn is not durable yet"
    );
    assert!(effect_names(&bench.handle(turn_closed(T1))).is_empty());
    assert_eq!(effect_names(&bench.handle(append_completed())), ["call"]);
}

#[test]
fn what_ends_a_turn_and_those_that_wait_says_why() {
    let put_away = |trigger| AgentCommand::SaveIfUnsaved { trigger, end: false };
    for (verb, middle, before) in [
        (put_away(Trigger::Shutdown), "daemon was stopped", (ErrorKind::Stopping, "daemon is stopping")),
        (put_away(Trigger::Destroy), "agent was destroyed", (ErrorKind::AgentNotFound, "agent was destroyed")),
        (
            AgentCommand::Hold { ends_turn: Some(Interruption::AgentDestroyed) },
            "agent was destroyed",
            (ErrorKind::AgentNotFound, "agent was destroyed"),
        ),
        (
            AgentCommand::Hold { ends_turn: Some(Interruption::AgentMoved) },
            "agent moved",
            (ErrorKind::Busy, "agent moved"),
        ),
    ] {
        let mut bench = Fixture::in_model_call();
        bench.send_message(T2, None);
        let effects = bench.ask(verb);
        assert_eq!(effect_names(&effects), ["stop", "error"]);
        let waited = only_error(&effects);
        assert!((waited.kind, waited.message.contains(before.1)) == (before.0, true), "{waited:?}");
        bench.handle(model_failure(Some("half")));
        let ran = only_error(&bench.handle(append_completed()));
        assert!(ran.kind == ErrorKind::Interrupted && ran.message.contains(middle), "{ran:?}");
    }
    // A rename does not wait for the turn, which would lose its directory.
    let mut bench = Fixture::in_model_call();
    let busy = only_reply(bench.ask(AgentCommand::Hold { ends_turn: None })).unwrap_err();
    assert_eq!(busy.kind, ErrorKind::Busy);
    assert_eq!(busy.hint.as_deref(), Some("wait until it ends, or cancel it with `chorusctl cancel a`"));
    assert!(bench.state.is_in_turn());
}

#[test]
fn a_turn_that_ends_without_a_word_sets_the_timer_too() {
    let mut bench = Fixture::in_model_call();
    let due = bench.state.context().unwrap().deadline.unwrap().due;
    bench.handle(model_failure(None));
    let effects = bench.handle(turn_closed(T1));
    let set = effects.iter().any(|effect| matches!(effect, Effect::SetDeadline { deadline: Some(_), .. }));
    assert!(set, "{effects:?}");
    assert!(bench.state.context().unwrap().deadline.unwrap().due > due);
}

#[test]
fn a_turn_that_ends_beside_a_pin_sets_the_timer_too() {
    let mut bench = Fixture::in_model_call();
    let due = bench.state.context().unwrap().deadline.unwrap().due;
    bench.handle(model_failure(None));
    let pinning = bench.ask(pin("a fact"));
    assert!(matches!(pinning[..], [Effect::RecordEdit(_)]), "{pinning:?}");
    bench.handle(turn_closed(T1));
    bench.handle(Event::EditRecorded(Ok(())));
    let context = bench.state.context().unwrap();
    assert!(context.deadline.unwrap().due > due && context.pin_count() == 1);
    assert!(!bench.state.is_in_turn());
}

#[test]
fn a_compaction_is_no_call_of_the_model() {
    let mut bench = Fixture::in_model_call();
    for n in 1..=MAX_CALLS {
        let step = 2 * n - 1;
        let compaction =
            Box::new(Compaction { upto: 0, derived: DerivedState::default(), receipt: Receipt::default() });
        bench.handle(Event::CompactionPlanned { turn_step: (T1, step), moment: MOMENT, compaction });
        assert_eq!(effect_names(&bench.handle(Event::Appended(Ok(AppendOutcome::RecordAppended)))), ["call"]);
        bench.handle(model_reply_in(T1, step + 1, "look", &["a"]));
        bench.handle(append_completed());
        bench.handle(tool_result_in(step + 1, "a"));
        let next = if n == MAX_CALLS { "last call" } else { "call" };
        assert_eq!(effect_names(&bench.handle(append_completed())), [next], "after call {n}");
    }
}

#[test]
fn notes_that_were_edited_since_a_compaction_survive_it_and_its_undo() {
    let item = |text: &str| Item { id: text.into(), text: text.into(), source: ItemSource::Rule, message_id: None };
    let decisions = |bench: &Fixture| -> Vec<String> {
        bench.state.context().unwrap().working_set.decisions.iter().map(|item| item.text.clone()).collect()
    };
    let edit = |bench: &mut Fixture, command| {
        bench.ask(command);
        bench.handle(Event::EditRecorded(Ok(())));
    };
    let mut bench = Fixture::in_model_call();
    // The compaction that the call plans does not know of this.
    edit(&mut bench, add_note(NoteList::Decisions, "during the call"));
    let derived = DerivedState { decisions: vec![item("found one"), item("found two")], ..DerivedState::default() };
    let compaction = Box::new(Compaction { upto: 1, derived, receipt: Receipt::default() });
    bench.handle(Event::CompactionPlanned { turn_step: (T1, 1), moment: MOMENT, compaction });
    bench.handle(Event::Appended(Ok(AppendOutcome::RecordAppended)));
    assert_eq!(decisions(&bench), ["found one", "found two", "during the call"]);
    bench.handle(model_reply_in(T1, 2, "Done.", &[]));
    bench.handle(append_completed());
    bench.handle(turn_closed(T1));
    edit(&mut bench, add_note(NoteList::Decisions, "afterwards"));
    edit(&mut bench, AgentCommand::EditNotes(Box::new(NoteEdit::Remove { note: NoteRef::any("d1") })));
    assert_eq!(decisions(&bench), ["found two", "during the call", "afterwards"]);
    bench.ask(AgentCommand::Uncompact);
    bench.handle(Event::EditRecorded(Ok(())));
    assert_eq!(decisions(&bench), ["during the call", "afterwards"]);
    let context = bench.state.context().unwrap();
    assert!(context.has_unsaved_changes() && context.working_set.closed[0].text == "found one");
}

#[test]
fn a_turn_that_is_cut_off_is_not_compacted() {
    let mut bench = Fixture::in_model_call();
    assert_eq!(effect_names(&bench.ask(AgentCommand::EndTurns)), ["stop", "ok"]);
    let compaction = Box::new(Compaction { upto: 1, derived: DerivedState::default(), receipt: Receipt::default() });
    let late = bench.handle(Event::CompactionPlanned { turn_step: (T1, 1), moment: MOMENT, compaction });
    assert!(!late.iter().any(|effect| matches!(effect, Effect::RecordCompaction { .. })), "{late:?}");
    let told = only_error(&bench.handle(turn_closed(T1)));
    assert!(told.message.contains("the daemon was stopped"), "{told:?}");
    assert_eq!((bench.state.is_in_turn(), bench.state.context().unwrap().window_start()), (false, 0));
}

#[test]
fn who_asks_whether_a_context_is_free_hears_of_a_turn() {
    let mut bench = Fixture::in_model_call();
    assert_eq!(only_reply(bench.ask(AgentCommand::CheckReplaceable)).unwrap_err().kind, ErrorKind::Busy);
    assert!(matches!(only_reply(Fixture::new().ask(AgentCommand::CheckReplaceable)), Ok(CommandOutcome::Done)));
}

#[test]
fn an_answer_that_was_heard_in_part_is_not_asked_for_again_in_short() {
    let mut bench = Fixture::in_model_call();
    let failure = Error::new(ErrorKind::Interrupted, "too long");
    let partial = Some(stored(Role::Assistant, "half"));
    let stopped = ModelFailure { failure, partial, usage: Usage::default(), too_long: true };
    let ended = Event::ModelCalled { turn_step: (T1, 1), moment: MOMENT, result: Box::new(Err(Box::new(stopped))) };
    assert_eq!(effect_names(&bench.handle(ended)), ["last"]);
}

#[test]
fn counts_that_no_provider_can_mean_are_added_all_the_same() {
    let mut bench = Fixture::in_model_call();
    for step in 1..3 {
        let usage = Usage { input_tokens: Some(u64::MAX), ..Usage::default() };
        let answer = ModelReply {
            message: Some(stored(Role::Assistant, "look")),
            text: String::new(),
            calls: vec![tool_call("a")],
            redacted_calls: vec![tool_call("a")],
            usage,
            note: None,
        };
        bench.handle(Event::ModelCalled { turn_step: (T1, step), moment: MOMENT, result: Box::new(Ok(answer)) });
        bench.handle(append_completed());
        let result = stored(Role::ToolResult, "result");
        let of = (T1, step);
        let ended = ToolEnded {
            turn_step: of,
            moment: MOMENT,
            call_index: 0,
            result,
            is_error: false,
            skipped: false,
            fatal: None,
        };
        bench.handle(Event::ToolEnded(Box::new(ended)));
        bench.handle(append_completed());
    }
    bench.handle(model_reply_in(T1, 3, "done", &[]));
    assert_eq!(effect_names(&bench.handle(append_completed())), ["ok"]);
}

#[test]
fn a_stop_ends_the_turn_that_runs_and_those_that_wait_and_leaves_the_context() {
    let mut bench = Fixture::in_model_call();
    bench.send_message(T2, None);
    assert_eq!(effect_names(&bench.ask(AgentCommand::EndTurns)), ["stop", "error", "ok"]);
    assert_eq!(effect_names(&bench.handle(model_failure(Some("half")))), ["last"]);
    let told = only_error(&bench.handle(append_completed()));
    assert!(told.message.contains("the daemon was stopped"), "{told:?}");
    assert_eq!(effect_names(&bench.ask(AgentCommand::EndTurns)), ["ok"]);
    assert_eq!(bench.texts(), ["go", "half"]);
}

#[test]
fn a_model_waits_for_tools() {
    let mut bench = Fixture::in_model_call();
    assert!(bench.state.is_waiting_for_model());
    bench.handle(model_reply("look", &["a"]));
    bench.handle(append_completed());
    assert!(bench.state.is_in_turn() && !bench.state.is_waiting_for_model());
    bench.handle(tool_result("a"));
    bench.handle(append_completed());
    assert!(bench.state.is_waiting_for_model());
}
