//! Passages that join the working set before a model call.

use chorus_proto::{Recall, RecalledPassage, Receipt};

use super::turn_fixtures::{MOMENT, T1, append_completed, effect_names, model_reply_in, turn_closed};
use super::*;
use crate::compaction::{Compaction, CompactionMode, DerivedState};
use crate::effect::CallModel;

fn recalling() -> Fixture {
    let mut bench = Fixture::new();
    bench.settings = Arc::new(AgentSettings { recall: 5, ..AgentSettings::clone(&bench.settings) });
    bench
}

fn call(effects: &[Effect]) -> &CallModel {
    let call = effects.iter().find_map(|effect| if let Effect::CallModel(call) = effect { Some(call) } else { None });
    call.expect("a model call")
}

fn recalled(step: u32, window_start: u64, texts: &[&str]) -> Event {
    let passage = |text: &&str| RecalledPassage {
        session: Some(Uuid::nil()),
        name: "earlier".into(),
        message: 1,
        role: Role::User,
        speaker: None,
        at: Timestamp::UNIX_EPOCH,
        text: (*text).to_owned(),
    };
    let recall = Recall { window_start, passages: texts.iter().map(passage).collect() };
    Event::Recalled { turn_step: (T1, step), moment: MOMENT, recall: Box::new(recall) }
}

fn texts(bench: &Fixture) -> Vec<String> {
    let recalled = bench.state.context().unwrap().working_set.recalled.clone();
    recalled.into_iter().flat_map(|recalled| recalled.passages).map(|passage| passage.text).collect()
}

fn recorded(bench: &mut Fixture) -> Vec<Effect> {
    bench.handle(Event::Appended(Ok(AppendOutcome::RecordAppended)))
}

#[test]
fn a_window_gets_its_passages_once_and_they_are_durable_before_the_call() {
    let mut bench = recalling();
    bench.send_message(T1, None);
    let first = bench.handle(append_completed());
    assert_eq!(call(&first).recall.as_ref().unwrap().count, 5);
    let effects = bench.handle(recalled(1, 0, &["the port is 8443"]));
    let [Effect::RecordRecall { record_number: 1, working_set, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(working_set.recalled.as_ref().unwrap().passages[0].text, "the port is 8443");
    assert!(texts(&bench).is_empty(), "not before it is recorded");
    let effects = recorded(&mut bench);
    let call = call(&effects);
    assert!(call.recall.is_none() && call.working_set.recalled.is_some() && call.step == 2, "{call:?}");
    bench.handle(model_reply_in(T1, 2, "Done.", &[]));
    bench.handle(append_completed());
    bench.handle(turn_closed(T1));
    bench.send_message(T1, None);
    let effects = bench.handle(append_completed());
    assert!(self::call(&effects).recall.is_none(), "nor in the next turn");
    let call = bench.state.next_call(&Arc::new(AgentSettings::clone(&Fixture::new().settings)));
    assert!(call.working_set.recalled.is_none(), "turned off, it is not shown");
}

#[test]
fn whatever_comes_of_a_recall_the_model_is_called() {
    let mut bench = recalling();
    bench.send_message(T1, None);
    bench.handle(append_completed());
    bench.handle(recalled(1, 0, &["a"]));
    let failed = Err(Error::new(ErrorKind::StorageFailed, "the disk is full"));
    let effects = bench.handle(Event::Appended(failed));
    assert!(call(&effects).recall.is_none() && texts(&bench).is_empty(), "once a turn");
    // One that comes too late is dropped.
    assert_eq!(bench.handle(recalled(1, 0, &["late"])).len(), 0);
    assert_eq!(effect_names(&bench.handle(model_reply_in(T1, 2, "Done.", &[]))), ["last"]);
}

#[test]
fn a_turn_that_is_cut_off_records_none() {
    let mut bench = recalling();
    bench.send_message(T1, None);
    bench.handle(append_completed());
    bench.ask(AgentCommand::EndTurns);
    let effects = bench.handle(recalled(1, 0, &["a"]));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::RecordRecall { .. })), "{effects:?}");
}

#[test]
fn a_compacted_window_recalls_anew_and_is_not_compacted_twice_for_it() {
    let mut bench = recalling();
    bench.send_message(T1, None);
    bench.handle(append_completed());
    bench.handle(recalled(1, 0, &["the first"]));
    recorded(&mut bench);
    let compaction = Box::new(Compaction { upto: 1, derived: DerivedState::default(), receipt: Receipt::default() });
    bench.handle(Event::CompactionPlanned { turn_step: (T1, 2), moment: MOMENT, compaction });
    let effects = recorded(&mut bench);
    let compacted = call(&effects);
    assert!(compacted.recall.is_some() && compacted.compaction_mode == CompactionMode::Off);
    assert_eq!(texts(&bench), ["the first"], "until there are others");
    bench.handle(recalled(3, 1, &["the second"]));
    let effects = recorded(&mut bench);
    let last = call(&effects);
    assert!(last.recall.is_none() && last.compaction_mode == CompactionMode::Off);
    assert_eq!(texts(&bench), ["the second"]);
}

#[test]
fn a_session_names_what_was_recalled_without_its_text_and_a_restored_one_recalls_anew() {
    let mut bench = recalling();
    bench.send_message(T1, None);
    bench.handle(append_completed());
    bench.handle(recalled(1, 0, &["the port is 8443"]));
    recorded(&mut bench);
    bench.handle(model_reply_in(T1, 2, "Done.", &[]));
    bench.handle(append_completed());
    bench.handle(turn_closed(T1));
    let draft = only_draft(bench.ask(AgentCommand::Save { description: None, tags: Vec::new(), clear: false }));
    let named = draft.working_set.recalled.clone().unwrap();
    assert!(named.passages[0].text.is_empty() && named.passages[0].name == "earlier");
    assert_eq!(texts(&bench), ["the port is 8443"]);
    bench.complete_write(&draft);
    let restore = Restore {
        session: Uuid::from_u128(9),
        session_id: "s".into(),
        messages: draft.messages.to_vec(),
        appended: Vec::new(),
        working_set: draft.working_set.clone(),
        restoration: TokenPair::default(),
        discard: true,
    };
    bench.ask(AgentCommand::Restore(Box::new(restore)));
    bench.handle(Event::ContextReplaced(Ok(())));
    assert!(texts(&bench).is_empty());
    bench.send_message(T1, None);
    let effects = bench.handle(append_completed());
    assert_eq!(call(&effects).recall.as_ref().unwrap().sessions, [Uuid::from_u128(9)]);
}
