//! Turns that were interrupted before anything was done in them, and are resumed.

use chorus_base::error::Error;
use chorus_proto::{ErrorKind, Role};
use uuid::Uuid;

use super::turn_fixtures::*;
use super::{Fixture, stored};
use crate::effect::{Effect, TurnMarker};
use crate::event::{AgentCommand, AppendOutcome, Event, PriorTurn, ToolEnded};
use crate::turn_resumption::is_unanswered_key_error;

/// The answer of the journal about the key of the turn [`T1`].
fn known_key() -> Event {
    Event::Appended(Ok(AppendOutcome::DuplicateTurn(PriorTurn { turn: T1, result: None })))
}

#[test]
fn a_turn_that_begins_again_is_open_in_the_journal_and_fails_in_its_own_words() {
    let mut bench = Fixture::new();
    bench.send_message(T1, Some("k"));
    bench.handle(append_completed());
    bench.restart_in_turn(T1);
    assert_eq!(effect_names(&bench.send_with_key(T2, Some("k"), true)), ["close", "open"]);
    let effects = bench.handle(known_key());
    let again = bench.state.running_turn().unwrap().turn;
    let [Effect::Append(append)] = &effects[..] else { panic!("{effects:?}") };
    assert!(matches!(&append.marker, Some(TurnMarker::Open { turn, key: None }) if *turn == again), "{append:?}");
    assert!(append.messages.is_empty());
    // Messages in between are not part of it.
    assert_eq!(effect_names(&bench.append("meanwhile")), ["append"]);
    let effects = bench.handle(append_completed());
    let asked =
        effects.iter().find_map(|effect| if let Effect::CallModel(asked) = effect { Some(asked) } else { None });
    assert_eq!(asked.unwrap().turn_start, 0);
    bench.complete_append(2);
    bench.ask(AgentCommand::Cancel(None));
    let Event::ModelCalled { moment, result, .. } = model_failure(Some("half")) else { panic!() };
    bench.handle(Event::ModelCalled { turn_step: (again, 1), moment, result });
    assert!(!is_unanswered_key_error(&only_error(&bench.handle(append_completed()))), "it was cancelled");
    // Its message is not the last one.
    bench.restart_in_turn(again);
    bench.send_with_key(T2, Some("k"), true);
    assert!(is_unanswered_key_error(&only_error(&bench.handle(known_key()))));
}

#[test]
fn a_turn_that_ends_the_daemon_each_time_begins_again_three_times() {
    let mut bench = Fixture::new();
    bench.send_message(T1, Some("k"));
    bench.handle(append_completed());
    let mut turns = vec![T1];
    for _ in 0..3 {
        bench.restart_in_turn(turns[turns.len() - 1]);
        bench.send_with_key(T2, Some("k"), true);
        assert_eq!(effect_names(&bench.handle(known_key())), ["open"]);
        assert!(effect_names(&bench.handle(append_completed())).contains(&"call"));
        let running = bench.state.running_turn().unwrap().turn;
        assert!(!turns.contains(&running), "{turns:?}");
        turns.push(running);
    }
    bench.restart_in_turn(turns[3]);
    bench.send_with_key(T2, Some("k"), true);
    assert!(is_unanswered_key_error(&only_error(&bench.handle(known_key()))));
}

#[test]
fn a_turn_whose_store_was_gone_begins_again_however_often_unless_something_was_done_in_it() {
    let gone = || Event::Appended(Err(Error::new(ErrorKind::StorageUnavailable, "the database is gone")));
    let mut bench = Fixture::new();
    bench.send_message(T1, Some("k"));
    bench.handle(append_completed());
    let mut running = T1;
    for _ in 0..40 {
        bench.handle(model_reply_in(running, 1, "done", &[]));
        assert_eq!(only_error(&bench.handle(gone())).kind, ErrorKind::StorageUnavailable);
        assert_eq!(effect_names(&bench.send_with_key(T2, Some("k"), true)), ["open"]);
        assert_eq!(effect_names(&bench.handle(known_key())), ["open"]);
        assert!(effect_names(&bench.handle(append_completed())).contains(&"call"));
        let next = bench.state.running_turn().unwrap().turn;
        assert_ne!(next, running);
        running = next;
    }
    // What only the memory knows is kept there.
    bench.handle(model_reply_in(running, 1, "done", &[]));
    bench.handle(gone());
    assert!(!bench.state.is_quiescent());
    bench.send_with_key(T2, Some("k"), true);
    bench.handle(known_key());
    bench.handle(append_completed());
    running = bench.state.running_turn().unwrap().turn;
    // Nor does it count as a crash.
    bench.restart_in_turn(running);
    bench.send_with_key(T2, Some("k"), true);
    assert_eq!(effect_names(&bench.handle(known_key())), ["open"]);
    bench.handle(append_completed());
    running = bench.state.running_turn().unwrap().turn;
    bench.handle(model_reply_in(running, 1, "look", &["a"]));
    bench.handle(append_completed());
    bench.handle(Event::ToolEnded(Box::new(ToolEnded {
        turn_step: (running, 1),
        moment: MOMENT,
        call_index: 0,
        result: stored(Role::ToolResult, "result"),
        is_error: false,
        skipped: false,
        fatal: None,
    })));
    assert_eq!(only_error(&bench.handle(gone())).kind, ErrorKind::StorageUnavailable);
    bench.send_with_key(T2, Some("k"), true);
    assert!(is_unanswered_key_error(&only_error(&bench.handle(known_key()))));
    assert_eq!(bench.texts(), ["go", "look"]);
}

#[test]
fn a_turn_without_its_store_is_left_alone_by_others_that_fail_and_begins_again() {
    let gone = || Event::Appended(Err(Error::new(ErrorKind::StorageUnavailable, "the database is gone")));
    let mut bench = Fixture::new();
    bench.send_message(T1, Some("k"));
    bench.handle(append_completed());
    // It waits, and is the next turn as soon as the first one has failed.
    bench.send_message(T2, Some("other"));
    bench.handle(model_reply_in(T1, 1, "done", &[]));
    bench.handle(gone());
    bench.handle(gone());
    assert!(!bench.state.is_in_turn());
    bench.send_with_key(Uuid::from_u128(9), Some("k"), true);
    assert_eq!(effect_names(&bench.handle(known_key())), ["open"]);
}

#[test]
fn a_turn_that_lost_its_store_stays_open_in_the_journal_for_whoever_has_the_agent_next() {
    let mut bench = Fixture::new();
    bench.send_message(T1, Some("k"));
    bench.handle(append_completed());
    assert_eq!(effect_names(&bench.ask(AgentCommand::EndTurnWithoutStore)), ["stop", "ok"]);
    let effects = bench.handle(model_failure(None));
    assert_eq!(effect_names(&effects), ["error"]);
    assert_eq!(only_error(&effects).kind, ErrorKind::StorageUnavailable);
    // A turn for which nobody asks again is closed.
    let mut bench = Fixture::new();
    bench.send_once(T1);
    bench.handle(append_completed());
    bench.ask(AgentCommand::EndTurnWithoutStore);
    assert_eq!(effect_names(&bench.handle(model_failure(None))), ["close"]);
    assert!(!bench.state.has_turn_to_retry());
}

#[test]
fn a_turn_that_was_cancelled_without_its_store_does_not_begin_again() {
    let mut bench = Fixture::new();
    bench.send_message(T1, Some("k"));
    bench.handle(append_completed());
    bench.ask(AgentCommand::Cancel(None));
    bench.handle(model_failure(None));
    let gone = Err(Error::new(ErrorKind::StorageUnavailable, "the database is gone"));
    let told = only_error(&bench.handle(Event::TurnClosed { turn: T1, moment: MOMENT, result: gone }));
    assert_eq!((told.kind, &*told.message), (ErrorKind::Interrupted, "the turn was cancelled"));
    bench.send_with_key(T2, Some("k"), true);
    assert!(is_unanswered_key_error(&only_error(&bench.handle(known_key()))));
    assert!(bench.state.is_quiescent());
}
