//! Tests of the limits on tool calls, and of turns that end because of their tools.

use core::time::Duration;
use std::sync::Arc;

use chorus_base::error::Error;
use chorus_proto::ErrorKind;
use chorus_proto::methods::send::TurnEvent;

use super::turn_fixtures::{
    MOMENT, T1, append_completed, effect_names, model_reply_in, only_error, tool_ended, turn_closed,
};
use super::{AgentSettings, Fixture};
use crate::effect::Effect;
use crate::event::AgentCommand;
use crate::tool_budget::{MAX_CALLS, MAX_CONSECUTIVE_FAILURES, ToolCutoff};

impl Fixture {
    /// Sends a reply with tool calls and their results. Returns the last effects.
    fn reply_with_calls(&mut self, step: u32, ids: &[&str], is_error: bool) -> Vec<Effect> {
        self.handle(model_reply_in(T1, step, "look", ids));
        self.handle(append_completed());
        for call in ids.iter().copied().enumerate() {
            self.handle(tool_ended(step, call, is_error, None));
        }
        ids.iter().map(|_| self.handle(append_completed())).last().unwrap()
    }
}

#[test]
fn fifty_calls_are_carried_out_and_the_others_answered() {
    let mut bench = Fixture::in_model_call();
    let ids: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    bench.handle(model_reply_in(T1, 1, "all of them", &ids));
    let run = effect_names(&bench.handle(append_completed()));
    let count = |name| run.iter().filter(|known| **known == name).count();
    assert_eq!((count("tool"), count("no tool")), (50, 150));
    for call in ids.iter().copied().enumerate() {
        bench.handle(tool_ended(1, call, call.0 >= MAX_CALLS as usize, None));
    }
    let effects: Vec<Effect> = ids.iter().flat_map(|_| bench.handle(append_completed())).collect();
    let words: Vec<_> = effects
        .iter()
        .filter_map(|effect| if let Effect::CallModel(asked) = effect { Some(asked.final_answer) } else { None })
        .collect();
    assert_eq!(words, [Some(ToolCutoff::CallLimit)], "what was not carried out is no failure");
    bench.handle(model_reply_in(T1, 2, "done", &[]));
    assert_eq!(effect_names(&bench.handle(append_completed())), ["ok"]);
}

#[test]
fn a_model_that_calls_after_the_last_word_ends_its_turn_with_legal_pairs() {
    let mut bench = Fixture::in_model_call();
    for n in 1..MAX_CALLS {
        assert_eq!(effect_names(&bench.reply_with_calls(n, &["a"], false)), ["call"]);
    }
    assert_eq!(effect_names(&bench.reply_with_calls(MAX_CALLS, &["a"], false)), ["last call"]);
    bench.handle(model_reply_in(T1, MAX_CALLS + 1, "look again", &["b"]));
    assert_eq!(effect_names(&bench.handle(append_completed())), ["no tool"]);
    bench.handle(tool_ended(MAX_CALLS + 1, (0, "b"), true, None));
    assert_eq!(effect_names(&bench.handle(append_completed())), ["close"]);
    let failure = only_error(&bench.handle(turn_closed(T1)));
    assert!(failure.kind == ErrorKind::Interrupted && failure.message.contains("50 tool calls"), "{failure:?}");
    assert!(failure.hint.is_some());
    assert_eq!(bench.texts().last().map(String::as_str), Some("b"));
}

#[test]
fn after_five_failures_in_a_row_the_model_is_to_answer() {
    let mut bench = Fixture::in_model_call();
    for n in 1..MAX_CONSECUTIVE_FAILURES {
        assert_eq!(effect_names(&bench.reply_with_calls(n, &["a"], true)), ["call"]);
    }
    assert_eq!(
        effect_names(&bench.reply_with_calls(MAX_CONSECUTIVE_FAILURES, &["a"], false)),
        ["call"],
        "it went well once"
    );
    let all = ["1", "2", "3", "4", "5", "6"];
    let effects = bench.reply_with_calls(MAX_CONSECUTIVE_FAILURES + 1, &all, true);
    let word = effects.iter().find_map(|effect| match effect {
        Effect::CallModel(asked) => asked.final_answer,
        _ => None,
    });
    assert_eq!(word, Some(ToolCutoff::FailureLimit));
    assert_eq!(effect_names(&bench.reply_with_calls(MAX_CONSECUTIVE_FAILURES + 2, &["again"], true)), ["close"]);
    assert!(only_error(&bench.handle(turn_closed(T1))).message.contains("in a row"));
    // The next turn starts with a new budget.
    bench.send_message(T1, None);
    assert_eq!(effect_names(&bench.handle(append_completed())), ["call"]);
}

#[test]
fn a_tool_that_cannot_go_on_ends_the_turn_when_all_calls_have_results() {
    let mut bench = Fixture::in_model_call();
    bench.handle(model_reply_in(T1, 1, "look", &["a", "b"]));
    bench.handle(append_completed());
    bench.handle(tool_ended(1, (0, "a"), true, Some(Error::disk_full())));
    assert_eq!(effect_names(&bench.handle(append_completed())), [""; 0], "the other has no result yet");
    bench.handle(tool_ended(1, (1, "b"), true, None));
    assert_eq!(effect_names(&bench.handle(append_completed())), ["close"]);
    assert_eq!(only_error(&bench.handle(turn_closed(T1))).kind, ErrorKind::DiskFull);
    assert_eq!(bench.texts(), ["go", "look", "a", "b"]);
}

#[test]
fn results_of_calls_with_one_id_stand_in_the_order_of_the_calls() {
    let mut bench = Fixture::in_model_call();
    bench.handle(model_reply_in(T1, 1, "look", &["same", "other", "same", "same"]));
    bench.handle(append_completed());
    for (call, appends) in [((2, "third"), 0), ((1, "second"), 1), ((0, "first"), 2), ((3, "fourth"), 1)] {
        assert_eq!(effect_names(&bench.handle(tool_ended(1, call, false, None))), vec!["append"; appends], "{call:?}");
        assert!(bench.handle(tool_ended(1, call, false, None)).is_empty(), "it comes once");
    }
    let effects: Vec<Effect> = (0..4).flat_map(|_| bench.handle(append_completed())).collect();
    assert_eq!(effect_names(&effects), ["call"]);
    assert_eq!(bench.texts(), ["go", "look", "second", "first", "third", "fourth"]);
}

#[test]
fn that_the_model_is_to_answer_is_said_once() {
    let mut bench = Fixture::in_model_call();
    let notes = |effects: &[Effect]| {
        effects.iter().filter(|effect| matches!(effect, Effect::Broadcast(TurnEvent::Note(_)))).count()
    };
    assert_eq!(notes(&bench.reply_with_calls(1, &["1", "2", "3", "4", "5"], true)), 1);
    assert_eq!(notes(&bench.reply_with_calls(2, &["again"], true)), 0, "why the turn ends says it");
}

#[test]
fn what_changes_in_the_middle_of_a_turn_holds_from_then_on() {
    let mut bench = Fixture::in_model_call();
    bench.settings =
        Arc::new(AgentSettings { idle_timeout: Some(Duration::from_secs(5)), ..(*bench.settings).clone() });
    bench.ask(AgentCommand::UpdateIdleTimeout);
    bench.handle(model_reply_in(T1, 1, "look", &["a"]));
    bench.handle(append_completed());
    let due = bench.state.context().unwrap().deadline.unwrap().due;
    assert_eq!(due, MOMENT.ticks.after(Duration::from_secs(5)));
}
