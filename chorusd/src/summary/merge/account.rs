//! The account of two lines of one conversation, as the context that goes on from both begins with it.

use std::fmt::Write as _;

use chorus_proto::{Item, WorkingSet};

use crate::summary::fit::{cut, messages, one_line};

/// The longest summary of a line, in characters.
const SUMMARY: usize = 1000;

/// Items of each kind, the newest.
const ITEMS: usize = 8;

/// The longest item, in characters.
const ITEM: usize = 200;

/// The longest that is kept of a model's words, in characters.
const TOLD: usize = 4000;

/// One of the two.
#[derive(Debug, Clone)]
pub struct Line {
    /// The session_id.
    pub name: String,
    /// Messages behind what both begin with.
    pub messages: u64,
    /// Of those.
    pub summary: Option<String>,
    /// What those name.
    pub found: WorkingSet,
}

/// The account in Chorus's own words, or around those of a model: what was brought together, what each line did, and where the two
/// contradict each other.
#[must_use]
pub fn account(common: u64, lines: [&Line; 2], conflicts: &[Item], told: Option<&str>) -> String {
    let [a, b] = lines.map(|line| format!("{} ({} of its own)", line.name, messages(line.messages)));
    let mut text = format!("Two lines of this conversation come together here: {a} and {b}. ");
    match common {
        0 => text.push_str("They have no message in common."),
        _ => text.push_str(&format!("Both begin with the {} before this one.", messages(common))),
    }
    match told {
        Some(told) => text.push_str(&format!("\n\n{told}")),
        None => lines.into_iter().for_each(|line| text.push_str(&own_words(line))),
    }
    if !conflicts.is_empty() {
        text.push_str("\n\nThe two may contradict each other here; nothing was chosen, that is for the user to say:");
        for conflict in conflicts {
            let _ = write!(text, "\n- {}", quoted(&conflict.text, ITEM * 3));
        }
    }
    text
}

fn own_words(line: &Line) -> String {
    let mut text = format!("\n\nIn {}", line.name);
    // Writing to a text cannot fail.
    let summary = line.summary.as_deref().unwrap_or(if line.messages == 0 { "Nothing more was said." } else { "" });
    let _ = write!(text, ": {}", quoted(summary, SUMMARY));
    let WorkingSet { decisions, open_tasks, files_touched, .. } = &line.found;
    for (title, items) in [("Decisions", decisions), ("Open tasks", open_tasks), ("Files", files_touched)] {
        let newest = &items[items.len().saturating_sub(ITEMS)..];
        if !newest.is_empty() {
            let items: Vec<String> = newest.iter().map(|item| quoted(&item.text, ITEM)).collect();
            let _ = write!(text, "\n{title}: {}", items.join(" · "));
        }
    }
    text
}

/// What is kept of a model's account; `None` where it said nothing.
#[must_use]
pub fn told(answer: &str) -> Option<String> {
    let answer = answer.trim();
    answer.chars().any(char::is_alphanumeric).then(|| cut(answer, TOLD))
}

fn quoted(text: &str, most: usize) -> String {
    cut(&one_line(text), most)
}

#[cfg(test)]
mod tests {
    use chorus_proto::ItemSource;

    use super::*;

    fn line(name: &str, messages: u64) -> Line {
        Line { name: name.into(), messages, summary: None, found: WorkingSet::default() }
    }

    fn item(text: &str) -> Item {
        Item { id: "1".into(), text: text.into(), source: ItemSource::Rule, message_id: None }
    }

    #[test]
    fn both_lines_are_told_and_what_contradicts() {
        let decisions = vec![item("Keep\nthe rows.")];
        let a = Line {
            summary: Some("The rows were kept.".into()),
            found: WorkingSet { decisions, ..WorkingSet::default() },
            ..line("one", 3)
        };
        let text = account(2, [&a, &line("two", 0)], &[item("one: “x” – two: “y”")], None);
        assert_eq!(
            text,
            "Two lines of this conversation come together here: one (3 messages of its own) and two (0 messages of its own). Both \
             begin with the 2 messages before this one.\n\nIn one: The rows were kept.\nDecisions: Keep the rows.\n\nIn two: Nothing \
             more was said.\n\nThe two may contradict each other here; nothing was chosen, that is for the user to say:\n- one: “x” – \
             two: “y”"
        );
    }

    #[test]
    fn a_models_words_take_the_place_of_ours_and_contradictions_stay() {
        let text = account(1, [&line("one", 1), &line("two", 1)], &[item("x")], Some("Both did much."));
        assert!(text.contains("\n\nBoth did much.\n\nThe two may") && !text.contains("In one"), "{text}");
        assert_eq!(told(" \n"), None);
        assert_eq!(told(&"word ".repeat(5000)).map(|text| text.chars().count() <= TOLD), Some(true));
    }
}
