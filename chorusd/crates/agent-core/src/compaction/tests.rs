use chorus_proto::{ItemSource, NewMessage, Role};
use chorus_session::summary::{ExtractedItems, ExtractionNotes};

use super::*;
use crate::window::MAX_CARRIED_ITEMS;

/// Compacts by rules.
fn compaction(
    record: &[StoredMessage],
    of: (usize, usize),
    set: &WorkingSet,
    limit: u64,
    wish: CompactionMode,
) -> Option<Compaction> {
    plan_compaction(record, of, set, limit, wish).map(|plan| plan.compact_by_rules(record, set, None))
}

/// No turn is running.
const LAST: usize = usize::MAX;

fn stored(role: Role, text: &str) -> StoredMessage {
    let mut id = 0;
    let next = || {
        id += 1;
        format!("{}-{id}", text.get(..8).unwrap_or(text))
    };
    StoredMessage::new(&NewMessage::text(role, text).complete(next, jiff::Timestamp::UNIX_EPOCH)).unwrap()
}

fn talk(turns: usize, chars: usize) -> Vec<StoredMessage> {
    let turn = |n: usize| {
        let text = format!("question {n}: we decided on plan {n} {}", "x".repeat(chars));
        [stored(Role::User, &text), stored(Role::Assistant, &"y".repeat(chars))]
    };
    (0..turns).flat_map(turn).collect()
}

#[test]
fn the_last_twenty_stay_and_more_of_their_first_turn() {
    let record = talk(30, 10);
    assert_eq!(find_window_start(&record, (0, LAST), 10_000), Some(40));
    let mut odd = record.clone();
    odd.insert(45, stored(Role::Assistant, "and"));
    assert_eq!(find_window_start(&odd, (0, LAST), 10_000), Some(40));
    // If messages are long, fewer of them stay; the newest turn stays whole.
    assert_eq!(find_window_start(&talk(30, 4000), (0, LAST), 5000), Some(56));
    assert_eq!(find_window_start(&talk(30, 4000), (0, LAST), 1), Some(58));
    // Messages that have left are not read again, and a single turn cannot be split.
    assert_eq!(find_window_start(&record, (40, LAST), 10_000), Some(42));
    assert_eq!(find_window_start(&record, (58, LAST), 10_000), None);
    assert_eq!(find_window_start(&[], (0, LAST), 10_000), None);
    assert_eq!(find_window_start(&talk(1, 10)[..1], (0, LAST), 0), None);
}

#[test]
fn the_message_that_opened_the_turn_stays() {
    let record = talk(30, 4000);
    assert_eq!(find_window_start(&record, (0, LAST), 5000), Some(56));
    assert_eq!(find_window_start(&record, (0, 50), 5000), Some(50));
    assert_eq!(find_window_start(&record, (0, 0), 5000), None);
    assert_eq!(compaction(&record, (50, 50), &WorkingSet::default(), 5000, CompactionMode::Now), None);
}

#[test]
fn large_pins_do_not_have_the_window_compacted_with_each_message() {
    let text = "z".repeat(12_000);
    let pin = Item { id: "1".into(), text, source: ItemSource::Hand, message_id: None };
    let set = WorkingSet { pinned_facts: vec![pin], ..WorkingSet::default() };
    // The pinned facts alone exceed the limit.
    assert_eq!(compaction(&talk(4, 100), (0, LAST), &set, 2000, CompactionMode::IfLong), None);
    let mut after = set.clone();
    let record = talk(30, 400);
    let done = compaction(&record, (0, LAST), &set, 2000, CompactionMode::IfLong).unwrap();
    let from = usize::try_from(done.upto).unwrap();
    done.derived.apply_to(&mut after);
    let next = [&record[..], &talk(1, 100)].concat();
    assert_eq!(compaction(&next, (from, LAST), &after, 2000, CompactionMode::IfLong), None);
}

#[test]
fn below_its_limit_a_window_stays_and_above_it_the_oldest_leave() {
    let (record, set) = (talk(30, 400), WorkingSet::default());
    assert_eq!(compaction(&record, (0, LAST), &set, 10_000, CompactionMode::IfLong), None);
    assert_eq!(compaction(&record, (0, LAST), &set, 1000, CompactionMode::Off), None);
    let done = compaction(&record, (0, LAST), &set, 6000, CompactionMode::IfLong).unwrap();
    assert_eq!((done.upto, done.receipt.left, done.receipt.kept), (40, 40, 20));
    assert!(done.receipt.tokens_after < done.receipt.tokens_before * 3 / 5 && done.receipt.tokens_after < 6000);
    assert_eq!(done.derived.decisions.len(), 20);
    assert!(done.derived.summary.is_some());
    assert_eq!(compaction(&record, (0, LAST), &set, 6000, CompactionMode::IfLong), Some(done), "the same every time");
    let now = compaction(&record, (0, LAST), &set, 1_000_000, CompactionMode::Now).unwrap();
    assert!(now.receipt.tokens_after < now.receipt.tokens_before / 2);
}

#[test]
fn whatever_goes_for_want_of_room_no_pin_does() {
    let pin = |n: u64| Item {
        id: n.to_string(),
        text: format!("fact {n} {}", "z".repeat(400)),
        source: ItemSource::Hand,
        message_id: None,
    };
    let mut set = WorkingSet { pinned_facts: (0..20).map(pin).collect(), ..WorkingSet::default() };
    let pins = set.pinned_facts.clone();
    let record = talk(200, 200);
    let mut from = 0;
    for upto in [100, 200, 300, 400] {
        let done = compaction(&record[..upto], (from, LAST), &set, 2000, CompactionMode::IfLong).unwrap();
        from = usize::try_from(done.upto).unwrap();
        assert_eq!(done.receipt.pins.len(), pins.len());
        done.derived.apply_to(&mut set);
        assert_eq!(set.pinned_facts, pins);
        // Decisions stay, however many; the window condenses them.
        assert_eq!(set.decisions.len(), from / 2);
        assert!(set.token_budget.used <= set.token_budget.limit, "{:?}", set.token_budget);
    }
}

fn item(text: &str, source: ItemSource) -> Item {
    Item { id: text.into(), text: text.into(), source, message_id: Some("m".into()) }
}

#[test]
fn what_a_model_wrote_down_is_taken_where_it_says_something_and_less_than_was_said() {
    let record = talk(30, 400);
    let mut set = WorkingSet { pinned_facts: vec![item("pinned", ItemSource::Hand)], ..WorkingSet::default() };
    set.open_tasks = vec![item("an older task", ItemSource::Rule)];
    let plan = plan_compaction(&record, (0, LAST), &set, 6000, CompactionMode::IfLong).unwrap();
    let fact = |text: &str| {
        ExtractionNotes::from(ExtractedItems {
            facts: vec![item(text, ItemSource::Model)],
            ..ExtractedItems::default()
        })
    };
    let done = plan.compact_by_model(&record, &set, fact("The port is 8080.")).unwrap();
    assert_eq!((done.receipt.source, done.receipt.offered.len()), (Some(ItemSource::Model), 1));
    assert_eq!((done.derived.facts.len(), done.derived.open_tasks.len()), (1, 1));
    assert!(done.derived.summary.is_some(), "the conversation's own words");
    assert_eq!(plan.compact_by_model(&record, &set, ExtractionNotes::default()), Err("has no content"));
    assert_eq!(plan.compact_by_model(&record, &set, fact(&"x".repeat(40_000))), Err("is longer than the conversation"));
    // Open tasks stay although they do not fit, up to a number far above that.
    let hand = item("a task of a hand", ItemSource::Hand);
    let tasks = (0..MAX_CARRIED_ITEMS + 100).map(|n| item(&format!("task {n} {}", "z".repeat(60)), ItemSource::Rule));
    set.open_tasks = std::iter::once(hand.clone()).chain(tasks).collect();
    let done = plan.compact_by_model(&record, &set, fact("The port is 8080.")).unwrap();
    let (facts, tasks) = (&done.derived.facts, &done.derived.open_tasks);
    assert!(facts.len() == 1 && tasks[0] == hand && tasks.last() == set.open_tasks.last(), "{tasks:?}");
    assert_eq!((tasks.len(), done.receipt.dropped), (MAX_CARRIED_ITEMS + 1, 100));
    assert!(done.receipt.condensed > 100 && done.receipt.tokens_after < 6000, "{:?}", done.receipt);
}

#[test]
fn each_list_has_its_share_and_the_oldest_of_each_go_first() {
    let items = |what: &str, source| (0..400).map(|n| item(&format!("{what} {n:03} xxxxxxxxxxxx"), source)).collect();
    let set = WorkingSet {
        facts: items("fact", ItemSource::Model),
        decisions: items("made", ItemSource::Model),
        open_tasks: items("task", ItemSource::Rule),
        conflicts: items("both", ItemSource::Model),
        topics: items("talk", ItemSource::Model),
        files_touched: vec![item("src/main.rs", ItemSource::Rule)],
        ..WorkingSet::default()
    };
    let record = talk(30, 400);
    let plan = plan_compaction(&record, (0, LAST), &set, 6000, CompactionMode::IfLong).unwrap();
    let found =
        ExtractedItems { files_touched: vec![item("src/lib.rs", ItemSource::Model)], ..ExtractedItems::default() };
    let done = plan.compact_by_model(&record, &set, found.into()).unwrap();
    let DerivedState { facts, decisions, open_tasks, conflicts, topics, files_touched, token_budget, .. } =
        done.derived;
    assert_eq!(files_touched.len(), 2, "what needs less than its share loses nothing");
    for (list, before) in [(&facts, &set.facts), (&conflicts, &set.conflicts), (&topics, &set.topics)] {
        assert!(list.len() >= 4 && before.ends_with(list), "{list:?}");
    }
    assert!(facts.len() > conflicts.len() && conflicts.len() > topics.len());
    assert_eq!((&decisions, &open_tasks), (&set.decisions, &set.open_tasks));
    assert!(token_budget.used <= token_budget.limit, "{token_budget:?}");
    assert!(token_budget.used > token_budget.limit * 8 / 10, "{token_budget:?}");
    let left = [&facts, &conflicts, &topics].map(Vec::len).iter().sum::<usize>();
    assert_eq!(done.receipt.dropped as usize, 1200 - left);
}

#[test]
fn what_a_model_takes_for_done_leaves_the_open_tasks_and_the_receipt_says_it() {
    let record = talk(30, 400);
    let open_tasks =
        vec![item("one", ItemSource::Rule), item("two", ItemSource::Hand), item("three", ItemSource::Model)];
    let set = WorkingSet { open_tasks, ..WorkingSet::default() };
    let plan = plan_compaction(&record, (0, LAST), &set, 6000, CompactionMode::IfLong).unwrap();
    let found = ExtractedItems { done: vec!["one".into(), "two".into()], ..ExtractedItems::default() };
    let done = plan.compact_by_model(&record, &set, found.into()).unwrap();
    let open: Vec<_> = done.derived.open_tasks.iter().map(|task| &*task.text).collect();
    assert_eq!((open, done.receipt.done), (vec!["two", "three"], vec!["one".to_owned()]));
}

#[test]
fn a_window_that_is_not_compacted_is_not_read_to_its_beginning() {
    assert!(
        plan_compaction(&talk(100, 40), (0, LAST), &WorkingSet::default(), 100_000, CompactionMode::IfLong).is_none()
    );
    let long = talk(4, 400);
    let all = tokens_with_working_set(&long, &WorkingSet::default());
    assert!(plan_compaction(&long, (0, LAST), &WorkingSet::default(), all, CompactionMode::IfLong).is_none());
    assert!(plan_compaction(&long, (0, LAST), &WorkingSet::default(), all - 1, CompactionMode::IfLong).is_some());
}
