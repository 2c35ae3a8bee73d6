//! Merges two branches of a conversation: unites their working sets, finds contradictions, and reports both branches.

mod contradictions;
mod merge_report;

use std::collections::HashSet;

use chorus_proto::{Item, ItemSource, WorkingSet};

use super::items::normalize_text;
pub use merge_report::{Branch, build_merge_report, sanitize_merge_report};

/// Merges the working sets of two branches, given with their names. Duplicates are removed. Contradictions are listed
/// as conflicts; neither side is dropped.
#[must_use]
pub fn merge_working_sets(a: (&str, &WorkingSet), b: (&str, &WorkingSet)) -> WorkingSet {
    let background = match (&a.1.background, &b.1.background) {
        (Some(one), Some(other)) if one != other => Some(format!("{one}\n\n{other}")),
        (one, other) => one.clone().or_else(|| other.clone()),
    };
    let mut conflicts = merge_items(&a.1.conflicts, &b.1.conflicts, normalize_text);
    conflicts.extend(contradictions::find_contradictions((a.0, &statements(a.1)), (b.0, &statements(b.1))));
    let mut closed = merge_items(&a.1.closed, &b.1.closed, normalize_text);
    let is_closed: HashSet<String> = closed.iter().map(|item| normalize_text(&item.text)).collect();
    // What one branch has closed is closed, unless somebody wrote it in the other.
    let open = |items: Vec<Item>| {
        let is_open = |item: &Item| item.source == ItemSource::Hand || !is_closed.contains(&normalize_text(&item.text));
        items.into_iter().filter(is_open).collect::<Vec<_>>()
    };
    let decisions = open(merge_items(&a.1.decisions, &b.1.decisions, normalize_text));
    let open_tasks = open(merge_items(&a.1.open_tasks, &b.1.open_tasks, normalize_text));
    closed.retain(|item| !decisions.iter().chain(&open_tasks).any(|open| open.id == item.id));
    WorkingSet {
        background,
        topics: merge_items(&a.1.topics, &b.1.topics, normalize_text),
        // Pinned facts are compared exactly.
        pinned_facts: merge_items(&a.1.pinned_facts, &b.1.pinned_facts, str::to_owned),
        facts: merge_items(&a.1.facts, &b.1.facts, normalize_text),
        decisions,
        open_tasks,
        files_touched: merge_items(&a.1.files_touched, &b.1.files_touched, str::to_owned),
        conflicts,
        closed,
        ..WorkingSet::default()
    }
}

/// Returns the items of both lists without duplicates, which have the same `key`.
fn merge_items(first: &[Item], second: &[Item], key: impl Fn(&str) -> String) -> Vec<Item> {
    let mut known = HashSet::with_capacity(first.len() + second.len());
    first.iter().chain(second).filter(|item| known.insert(key(&item.text))).cloned().collect()
}

/// Returns the items that state something.
fn statements(set: &WorkingSet) -> Vec<&Item> {
    set.pinned_facts.iter().chain(&set.facts).chain(&set.decisions).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(texts: &[&str]) -> Vec<Item> {
        let item =
            |text: &&str| Item { id: (*text).into(), text: (*text).into(), source: ItemSource::Rule, message_id: None };
        texts.iter().map(item).collect()
    }

    fn texts(items: &[Item]) -> Vec<&str> {
        items.iter().map(|item| item.text.as_str()).collect()
    }

    #[test]
    fn nothing_is_twice_and_pins_are_kept_to_the_letter() {
        let a = WorkingSet {
            pinned_facts: items(&["The port is 80"]),
            decisions: items(&["We decided to keep the rows."]),
            ..WorkingSet::default()
        };
        let b = WorkingSet {
            background: Some("Before.".into()),
            pinned_facts: items(&["The port is 80", "the port is 80"]),
            decisions: items(&["we decided to keep  the rows", "We decided to move house."]),
            ..WorkingSet::default()
        };
        let set = merge_working_sets(("a", &a), ("b", &b));
        assert_eq!(texts(&set.pinned_facts), ["The port is 80", "the port is 80"]);
        assert_eq!(texts(&set.decisions), ["We decided to keep the rows.", "We decided to move house."]);
        assert_eq!((set.background.as_deref(), set.conflicts.len()), (Some("Before."), 0));
    }

    #[test]
    fn what_contradicts_is_listed_and_both_stay() {
        let set = |port: &str, store: &str| WorkingSet {
            pinned_facts: items(&["Berlin is where we are."]),
            facts: items(&[port]),
            decisions: items(&[store]),
            ..WorkingSet::default()
        };
        let a = set("The port is 8080.", "We decided to use Postgres for the cache.");
        let b = set("The port is 9090.", "We decided to use Redis for the cache.");
        let both = merge_working_sets(("one", &a), ("two", &b));
        assert_eq!((both.pinned_facts.len(), both.facts.len(), both.decisions.len()), (1, 2, 2));
        assert_eq!(
            texts(&both.conflicts),
            [
                "one: “The port is 8080.” – two: “The port is 9090.”",
                "one: “We decided to use Postgres for the cache.” – two: “We decided to use Redis for the cache.”"
            ]
        );
        assert_eq!(merge_working_sets(("two", &b), ("two", &b)).conflicts, []);
    }
}
