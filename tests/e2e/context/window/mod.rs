//! P8: whatever became of a conversation, what a model is shown of it is legal.

pub mod random_history;
mod show;
mod token_estimate;
pub mod wire_formats;

use chorus_agent_core::compaction::find_window_start;
use chorus_agent_core::window::{Window, WindowBudget, build_window, repair_messages};
use chorus_proto::{Message, NewMessage, Role};
use chorus_session::stored_message::StoredMessage;
use chorus_tests::rng::{Rng, rounds_from_env};
use jiff::Timestamp;

use random_history::{call, history, message, result, stored};

/// Histories of a run; `CHORUS_WINDOW_ROUNDS` makes it more.
pub const ROUNDS: u64 = 20_000;

const ALL: WindowBudget = WindowBudget { messages: usize::MAX, tokens: u64::MAX };

fn json(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| serde_json::to_string(message).expect("serialises")).collect()
}

#[test]
fn every_window_of_every_history_is_legal_for_both_wire_formats() {
    let mut rng = Rng::new(8);
    for round in 0..rounds_from_env("CHORUS_WINDOW_ROUNDS", ROUNDS) {
        let record = history(&mut rng);
        let budget = match rng.below(4) {
            0 => ALL,
            1 => WindowBudget { messages: rng.below(8) as usize, tokens: u64::MAX },
            2 => WindowBudget { messages: usize::MAX, tokens: rng.below(40) },
            _ => WindowBudget { messages: 1 + rng.below(20) as usize, tokens: rng.below(200) },
        };
        let before = record.iter().map(|message| message.json().clone()).collect::<Vec<_>>();
        let view = compacted(&record, &mut rng);
        let Window { messages, left_out, .. } = build_window(&record[view..], budget);
        let told = || format!("round {round}, {budget:?}: {:#?}\nshown as {:#?}", before, json(&messages));
        wire_formats::anthropic(&messages).unwrap_or_else(|why| panic!("{why}: {}", told()));
        wire_formats::openai(&messages).unwrap_or_else(|why| panic!("{why}: {}", told()));
        let (again, mended) = repair_messages(messages.clone());
        assert_eq!((json(&again), mended), (json(&messages), Vec::new()), "mended twice: {}", told());
        assert!(left_out < (record.len() - view).max(1), "nothing is shown: {}", told());
        // The record is as it was.
        assert!(record.iter().zip(&before).all(|(message, json)| message.json() == json));
    }
}

/// Where the window of a record begins after some compactions.
fn compacted(record: &[StoredMessage], rng: &mut Rng) -> usize {
    let mut view = 0;
    for _ in 0..rng.below(3) {
        if let Some(upto) = find_window_start(record, (view, usize::MAX), rng.below(60)) {
            assert!(upto > view && upto < record.len() && record[upto].role() == Role::User, "{view} to {upto}");
            view = upto;
        }
    }
    view
}

/// What is legal is shown as it is.
#[test]
fn a_sound_conversation_is_shown_word_for_word() {
    let record: Vec<StoredMessage> = vec![
        stored(message(Role::User, "List the files.")),
        stored(call(&["c1", "c2"])),
        stored(result("c2", "b.txt")),
        stored(result("c1", "a.txt")),
        stored(message(Role::Assistant, "Two files.")),
    ];
    let shown = build_window(&record, ALL);
    assert_eq!((shown.left_out, shown.repairs.len()), (0, 0));
    let as_kept: Vec<_> = record.iter().map(|m| String::from_utf8(m.json().to_vec()).expect("UTF-8")).collect();
    assert_eq!(json(&shown.messages), as_kept);
}

fn texts(record: &[StoredMessage], messages: usize) -> Vec<String> {
    let shown = build_window(record, WindowBudget { messages, tokens: u64::MAX });
    shown.messages.into_iter().map(|message| message.content).collect()
}

#[test]
fn it_is_cut_between_turns_and_within_the_newest_only_between_exchanges() {
    let mut record: Vec<StoredMessage> =
        ["one", "re one", "two"].into_iter().map(|text| stored(message(role(text), text))).collect();
    for n in 0..3 {
        record.push(stored(call(&[&format!("c{n}")])));
        record.push(stored(result(&format!("c{n}"), &format!("result {n}"))));
    }
    record.push(stored(message(Role::Assistant, "done")));
    assert_eq!(texts(&record, 10).len(), 10);
    // Nine messages would begin in the middle of the first turn.
    assert_eq!(texts(&record, 9)[0], "two");
    assert_eq!(texts(&record, 8).len(), 8);
    assert_eq!(texts(&record, 7), ["two", "", "result 1", "", "result 2", "done"]);
    assert_eq!(texts(&record, 4), ["two", "", "result 2", "done"]);
    assert_eq!(texts(&record, 0), ["two", "done"]);
    assert_eq!(texts(&[], 5), [""; 0]);
}

fn role(text: &str) -> Role {
    if text.starts_with("re ") { Role::Assistant } else { Role::User }
}

#[test]
fn what_is_mended_is_told_with_the_message_it_is_about() {
    let system = NewMessage { id: Some("s".into()), ..message(Role::System, "Obey me.\nNow.") };
    let record = vec![stored(system), stored(call(&["x", "x"])), stored(result("y", "stray"))];
    let shown = build_window(&record, ALL);
    let texts: Vec<_> = shown.messages.iter().map(|message| &*message.content).collect();
    assert_eq!(texts[0], "A system message of this conversation, quoted:\n> Obey me.\n> Now.");
    assert_eq!(&texts[1..4], ["", "interrupted, outcome unknown", "interrupted, outcome unknown"]);
    assert_eq!(texts[4], "A result of view without its call, quoted:\n> stray");
    let ids: Vec<_> = shown.messages[1].tool_calls.iter().map(|call| &*call.id).collect();
    assert_eq!(ids, ["x", "x-2"]);
    let told: Vec<_> = shown.repairs.iter().map(|mended| format!("{:?}", mended.kind)).collect();
    assert_eq!(told, ["Quoted", "Renamed", "Answered", "Stray"]);
    assert_eq!(shown.repairs[0].id, "s");
    assert!(shown.messages[0].timestamp > Timestamp::UNIX_EPOCH && shown.messages[0].role == Role::User);
}
