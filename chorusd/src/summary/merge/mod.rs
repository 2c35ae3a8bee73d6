//! What becomes of two lines of one conversation that come together: their working sets united, where they contradict each other, and
//! an account of both.

mod account;
mod contradictions;

use chorus_proto::{Item, WorkingSet};

pub use account::{Line, account, told};

use super::items::same;

/// The working sets of two lines as one: nothing twice, and nothing chosen where they contradict each other. `a` and `b` are their
/// names, and what each has.
#[must_use]
pub fn united(a: (&str, &WorkingSet), b: (&str, &WorkingSet)) -> WorkingSet {
    let background = match (&a.1.background, &b.1.background) {
        (Some(one), Some(other)) if one != other => Some(format!("{one}\n\n{other}")),
        (one, other) => one.clone().or_else(|| other.clone()),
    };
    let mut conflicts = both(&a.1.conflicts, &b.1.conflicts, same);
    conflicts.extend(contradictions::between((a.0, &stated(a.1)), (b.0, &stated(b.1))));
    WorkingSet {
        background,
        topics: both(&a.1.topics, &b.1.topics, same),
        // What people pinned is kept to the letter.
        pinned_facts: both(&a.1.pinned_facts, &b.1.pinned_facts, str::eq),
        facts: both(&a.1.facts, &b.1.facts, same),
        decisions: both(&a.1.decisions, &b.1.decisions, same),
        open_tasks: both(&a.1.open_tasks, &b.1.open_tasks, same),
        files_touched: both(&a.1.files_touched, &b.1.files_touched, str::eq),
        conflicts,
        ..WorkingSet::default()
    }
}

/// Those of the first, and of the second, but none that says what one before it says.
fn both(first: &[Item], second: &[Item], same: impl Fn(&str, &str) -> bool) -> Vec<Item> {
    let mut all: Vec<Item> = Vec::with_capacity(first.len() + second.len());
    for item in first.iter().chain(second) {
        if !all.iter().any(|known| same(&known.text, &item.text)) {
            all.push(item.clone());
        }
    }
    all
}

/// What is held to be so.
fn stated(set: &WorkingSet) -> Vec<&Item> {
    set.pinned_facts.iter().chain(&set.facts).chain(&set.decisions).collect()
}

#[cfg(test)]
mod tests {
    use chorus_proto::ItemSource;

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
        let set = united(("a", &a), ("b", &b));
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
        let both = united(("one", &a), ("two", &b));
        assert_eq!((both.pinned_facts.len(), both.facts.len(), both.decisions.len()), (1, 2, 2));
        assert_eq!(
            texts(&both.conflicts),
            [
                "one: “The port is 8080.” – two: “The port is 9090.”",
                "one: “We decided to use Postgres for the cache.” – two: “We decided to use Redis for the cache.”"
            ]
        );
        assert_eq!(united(("two", &b), ("two", &b)).conflicts, []);
    }
}
