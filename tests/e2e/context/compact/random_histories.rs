//! Compaction of any history, by rules and by what a model may say: it moves the window between turns, keeps what people pinned and what
//! is open, and stays within its budget.

use chorus_agent_core::compaction::{Compaction, CompactionMode, CompactionPlan, plan_compaction};
use chorus_agent_core::window::{WindowBudget, build_window, working_set_block};
use chorus_proto::{Item, ItemSource, NewMessage, Role, WorkingSet};
use chorus_session::stored_message::StoredMessage;
use chorus_session::summary::ExtractedItems;
use chorus_tests::rng::{Rng, rounds_from_env};

use crate::context::window::random_history::{history, message, stored};
use crate::context::window::{ROUNDS, wire_formats};

/// No turn runs.
const LAST: usize = usize::MAX;

fn item(text: String, source: ItemSource) -> Item {
    Item { id: text.clone(), text, source, message_id: Some("m".into()) }
}

fn items(rng: &mut Rng, what: &str, source: ItemSource) -> Vec<Item> {
    let said = ["a  b", "ä\n# x", "– „c“", "decided: d"];
    let count = rng.below(4);
    (0..count).map(|n| item(format!("{what} {n} {}", said[rng.below(4) as usize]), source)).collect()
}

fn working_set(rng: &mut Rng) -> WorkingSet {
    WorkingSet {
        pinned_facts: items(rng, "pin", ItemSource::Hand),
        open_tasks: [items(rng, "task", ItemSource::Rule), items(rng, "asked", ItemSource::Hand)].concat(),
        facts: items(rng, "fact", ItemSource::Model),
        background: (rng.below(3) == 0).then(|| "what was before".to_owned()),
        ..WorkingSet::default()
    }
}

/// What a model may have said, too much sometimes.
fn found(rng: &mut Rng) -> ExtractedItems {
    let length = 1 + rng.below(30) as usize;
    let facts = items(rng, &"new fact ".repeat(length), ItemSource::Model);
    let open_tasks = items(rng, "new task", ItemSource::Model);
    let done = (0..rng.below(3)).map(|n| format!("task {n} a  b")).collect();
    let summary = (rng.below(2) == 0).then(|| "current state".to_owned());
    ExtractedItems { summary, facts, open_tasks, done, ..ExtractedItems::default() }
}

/// A history that has something to leave.
fn long(rng: &mut Rng) -> Vec<StoredMessage> {
    let mut record = history(rng);
    for _ in 0..rng.below(12) {
        let text = format!("We decided on {}. {}", rng.below(9), "word ".repeat(rng.below(60) as usize));
        record.push(stored(NewMessage { id: None, ..message(Role::User, &text) }));
        record.extend(history(rng));
    }
    record
}

fn check(record: &[StoredMessage], set: &WorkingSet, plan: &CompactionPlan, done: &Compaction) -> Result<(), String> {
    let mut after = set.clone();
    done.derived.clone().apply_to(&mut after);
    let expect = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
    expect(after.pinned_facts == set.pinned_facts, "a pin was changed")?;
    expect(after.background == set.background, "the background was changed")?;
    let mut by_hand = set.open_tasks.iter().filter(|task| task.source == ItemSource::Hand);
    expect(by_hand.all(|task| after.open_tasks.contains(task)), "a hand's task is gone")?;
    expect(record[plan.upto].role() == Role::User && plan.upto > plan.from, "it begins within a turn")?;
    let pins: Vec<_> = set.pinned_facts.iter().map(|pin| pin.text.clone()).collect();
    expect(done.receipt.pins == pins && done.receipt.left as usize == plan.upto - plan.from, "a wrong receipt")?;
    let shown = build_window(&record[plan.upto..], WindowBudget { messages: 50, tokens: u64::MAX });
    wire_formats::anthropic(&shown.messages)?;
    wire_formats::openai(&shown.messages)
}

#[test]
fn of_any_history_pins_and_open_tasks_stay_and_the_window_is_legal() {
    let mut rng = Rng::new(20);
    let (mut by_rules, mut by_model) = (0, 0);
    for round in 0..rounds_from_env("CHORUS_WINDOW_ROUNDS", ROUNDS) / 50 {
        let (record, mut set) = (long(&mut rng), working_set(&mut rng));
        let (limit, mut from) = (100 + rng.below(400), 0);
        for _ in 0..3 {
            let wish = if rng.below(4) == 0 { CompactionMode::Now } else { CompactionMode::IfLong };
            let Some(plan) = plan_compaction(&record, (from, LAST), &set, limit, wish) else { break };
            let told = |why: String| panic!("round {round}: {why}; {plan:?} of {set:?}");
            let done = match plan.compact_by_model(&record, &set, found(&mut rng).into()) {
                Ok(done) => {
                    by_model += 1;
                    done
                }
                Err(_) => {
                    let done = plan.compact_by_rules(&record, &set, None);
                    assert_eq!(done, plan.compact_by_rules(&record, &set, None), "round {round}: the same every time");
                    done
                }
            };
            by_rules += u32::from(done.receipt.source == Some(ItemSource::Rule));
            check(&record, &set, &plan, &done).unwrap_or_else(told);
            (from, _) = (plan.upto, done.derived.apply_to(&mut set));
            // What was derived has its share; what people put there has what it needs.
            let by_hand = WorkingSet {
                pinned_facts: set.pinned_facts.clone(),
                background: set.background.clone(),
                open_tasks: set.open_tasks.iter().filter(|task| task.source == ItemSource::Hand).cloned().collect(),
                ..WorkingSet::default()
            };
            let shown = |set: &WorkingSet| working_set_block::tokens(&working_set_block::fit_to_window(set, limit));
            let derived = shown(&set).saturating_sub(shown(&by_hand));
            assert!(derived <= limit / 4 + limit / 8 + 120, "round {round}: {derived} of {limit}: {set:?}");
        }
    }
    assert!(by_rules > 20 && by_model > 20, "{by_rules} by rules, {by_model} by a model");
}
