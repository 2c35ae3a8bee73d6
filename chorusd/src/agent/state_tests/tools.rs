//! What a turn may call, and what ends it because of its tools.

use core::time::Duration;
use std::sync::Arc;

use chorus_proto::ErrorKind;
use chorus_proto::methods::send::Said;

use super::turns::{MOMENT, T1, closed, ended, failed, kept, names, said_in};
use super::{Bench, Facts};
use crate::agent::allowance::{LastWord, MAX_CALLS, MAX_FAILURES};
use crate::agent::effect::Effect;
use crate::agent::event::Verb;
use crate::failure::Failure;

impl Bench {
    /// An answer that calls, with the results of all calls; the effects of the last.
    fn calls(&mut self, step: u32, ids: &[&str], is_error: bool) -> Vec<Effect> {
        self.handle(said_in(T1, step, "look", ids));
        self.handle(kept());
        for call in ids.iter().copied().enumerate() {
            self.handle(ended(step, call, is_error, None));
        }
        ids.iter().map(|_| self.handle(kept())).last().unwrap()
    }
}

#[test]
fn fifty_calls_are_carried_out_and_the_others_answered() {
    let mut bench = Bench::asking();
    let ids: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    bench.handle(said_in(T1, 1, "all of them", &ids));
    let run = names(&bench.handle(kept()));
    let count = |name| run.iter().filter(|known| **known == name).count();
    assert_eq!((count("tool"), count("no tool")), (50, 150));
    for call in ids.iter().copied().enumerate() {
        bench.handle(ended(1, call, call.0 >= MAX_CALLS as usize, None));
    }
    let effects: Vec<Effect> = ids.iter().flat_map(|_| bench.handle(kept())).collect();
    let words: Vec<_> = effects
        .iter()
        .filter_map(|effect| if let Effect::CallModel(asked) = effect { Some(asked.last_word) } else { None })
        .collect();
    assert_eq!(words, [Some(LastWord::Spent)], "what was not carried out is no failure");
    bench.handle(said_in(T1, 2, "done", &[]));
    assert_eq!(names(&bench.handle(kept())), ["ok"]);
}

#[test]
fn a_model_that_calls_after_the_last_word_ends_its_turn_with_legal_pairs() {
    let mut bench = Bench::asking();
    for n in 1..MAX_CALLS {
        assert_eq!(names(&bench.calls(n, &["a"], false)), ["call"]);
    }
    assert_eq!(names(&bench.calls(MAX_CALLS, &["a"], false)), ["last call"]);
    bench.handle(said_in(T1, MAX_CALLS + 1, "look again", &["b"]));
    assert_eq!(names(&bench.handle(kept())), ["no tool"]);
    bench.handle(ended(MAX_CALLS + 1, (0, "b"), true, None));
    assert_eq!(names(&bench.handle(kept())), ["close"]);
    let failure = failed(&bench.handle(closed(T1)));
    assert!(failure.kind == ErrorKind::Interrupted && failure.message.contains("50 calls"), "{failure:?}");
    assert!(failure.hint.is_some());
    assert_eq!(bench.texts().last().map(String::as_str), Some("b"));
}

#[test]
fn after_five_failures_in_a_row_the_model_is_to_answer() {
    let mut bench = Bench::asking();
    for n in 1..MAX_FAILURES {
        assert_eq!(names(&bench.calls(n, &["a"], true)), ["call"]);
    }
    assert_eq!(names(&bench.calls(MAX_FAILURES, &["a"], false)), ["call"], "it went well once");
    let all = ["1", "2", "3", "4", "5", "6"];
    let effects = bench.calls(MAX_FAILURES + 1, &all, true);
    let word = effects.iter().find_map(|effect| match effect {
        Effect::CallModel(asked) => asked.last_word,
        _ => None,
    });
    assert_eq!(word, Some(LastWord::Failing));
    assert_eq!(names(&bench.calls(MAX_FAILURES + 2, &["again"], true)), ["close"]);
    assert!(failed(&bench.handle(closed(T1))).message.contains("in a row"));
    // The next turn begins anew.
    bench.send(T1, None);
    assert_eq!(names(&bench.handle(kept())), ["call"]);
}

#[test]
fn a_tool_that_cannot_go_on_ends_the_turn_when_all_calls_have_results() {
    let mut bench = Bench::asking();
    bench.handle(said_in(T1, 1, "look", &["a", "b"]));
    bench.handle(kept());
    bench.handle(ended(1, (0, "a"), true, Some(Failure::disk_full())));
    assert_eq!(names(&bench.handle(kept())), [""; 0], "the other has no result yet");
    bench.handle(ended(1, (1, "b"), true, None));
    assert_eq!(names(&bench.handle(kept())), ["close"]);
    assert_eq!(failed(&bench.handle(closed(T1))).kind, ErrorKind::DiskFull);
    assert_eq!(bench.texts(), ["go", "look", "a", "b"]);
}

#[test]
fn results_of_calls_with_one_id_stand_in_the_order_of_the_calls() {
    let mut bench = Bench::asking();
    bench.handle(said_in(T1, 1, "look", &["same", "other", "same", "same"]));
    bench.handle(kept());
    for (call, appends) in [((2, "third"), 0), ((1, "second"), 1), ((0, "first"), 2), ((3, "fourth"), 1)] {
        assert_eq!(names(&bench.handle(ended(1, call, false, None))), vec!["append"; appends], "{call:?}");
        assert!(bench.handle(ended(1, call, false, None)).is_empty(), "it comes once");
    }
    let effects: Vec<Effect> = (0..4).flat_map(|_| bench.handle(kept())).collect();
    assert_eq!(names(&effects), ["call"]);
    assert_eq!(bench.texts(), ["go", "look", "second", "first", "third", "fourth"]);
}

#[test]
fn that_the_model_is_to_answer_is_said_once() {
    let mut bench = Bench::asking();
    let notes =
        |effects: &[Effect]| effects.iter().filter(|effect| matches!(effect, Effect::SayAll(Said::Note(_)))).count();
    assert_eq!(notes(&bench.calls(1, &["1", "2", "3", "4", "5"], true)), 1);
    assert_eq!(notes(&bench.calls(2, &["again"], true)), 0, "why the turn ends says it");
}

#[test]
fn what_changes_in_the_middle_of_a_turn_holds_from_then_on() {
    let mut bench = Bench::asking();
    bench.facts = Arc::new(Facts { idle_timeout: Some(Duration::from_secs(5)), ..(*bench.facts).clone() });
    bench.ask(Verb::Retime);
    bench.handle(said_in(T1, 1, "look", &["a"]));
    bench.handle(kept());
    let due = bench.state.context().unwrap().deadline.unwrap().due;
    assert_eq!(due, MOMENT.ticks.after(Duration::from_secs(5)));
}
