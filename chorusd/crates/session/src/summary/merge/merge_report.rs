//! Reports two branches of a conversation, as the first message of the context that merges them.

use std::fmt::Write as _;

use chorus_proto::{Item, WorkingSet};

use crate::summary::text_limit::{format_message_count, one_line, truncate_chars};

/// Length of the longest summary of a branch, in characters.
const MAX_SUMMARY_CHARS: usize = 1000;

/// Number of the newest items of each kind that are included.
const MAX_ITEMS: usize = 8;

/// Length of the longest item, in characters.
const MAX_ITEM_CHARS: usize = 200;

/// Length of the longest report of a model that is kept, in characters.
const MAX_REPORT_CHARS: usize = 4000;

/// One of the two branches.
#[derive(Debug, Clone)]
pub struct Branch {
    /// The session_id.
    pub name: String,
    /// Number of messages after the common ones.
    pub messages: u64,
    /// Summary of these messages.
    pub summary: Option<String>,
    /// The items that these messages name.
    pub found: WorkingSet,
}

/// Builds the report: what was merged, what each branch did, and where the two contradict each other. `told` is a
/// model's description of the branches; without it, the report is built from their summaries and items.
#[must_use]
pub fn build_merge_report(common: u64, lines: [&Branch; 2], conflicts: &[Item], told: Option<&str>) -> String {
    let [a, b] = lines.map(|line| format!("{} ({})", line.name, format_message_count(line.messages)));
    let mut text = format!("This conversation merges two branches: {a} and {b}. ");
    match common {
        0 => text.push_str("They share no messages."),
        _ => text.push_str(&format!("Both start with the {} before this one.", format_message_count(common))),
    }
    match told {
        Some(told) => text.push_str(&format!("\n\n{told}")),
        None => lines.into_iter().for_each(|line| text.push_str(&describe_branch(line))),
    }
    if !conflicts.is_empty() {
        text.push_str("\n\nUnresolved conflicts between the two branches; please decide:");
        for conflict in conflicts {
            let _ = write!(text, "\n- {}", truncate_line(&conflict.text, MAX_ITEM_CHARS * 3));
        }
    }
    text
}

fn describe_branch(line: &Branch) -> String {
    let mut text = format!("\n\nIn {}", line.name);
    // Writing to a String cannot fail.
    let summary = line.summary.as_deref().unwrap_or(if line.messages == 0 { "No further messages." } else { "" });
    let _ = write!(text, ": {}", truncate_line(summary, MAX_SUMMARY_CHARS));
    let WorkingSet { decisions, open_tasks, files_touched, .. } = &line.found;
    for (title, items) in [("Decisions", decisions), ("Open tasks", open_tasks), ("Files", files_touched)] {
        let newest = &items[items.len().saturating_sub(MAX_ITEMS)..];
        if !newest.is_empty() {
            let items: Vec<String> = newest.iter().map(|item| truncate_line(&item.text, MAX_ITEM_CHARS)).collect();
            let _ = write!(text, "\n{title}: {}", items.join(" · "));
        }
    }
    text
}

/// Trims a model's report and truncates it. Returns `None` if it contains no text.
#[must_use]
pub fn sanitize_merge_report(answer: &str) -> Option<String> {
    let answer = answer.trim();
    answer.chars().any(char::is_alphanumeric).then(|| truncate_chars(answer, MAX_REPORT_CHARS))
}

fn truncate_line(text: &str, most: usize) -> String {
    truncate_chars(&one_line(text), most)
}

#[cfg(test)]
mod tests {
    use chorus_proto::ItemSource;

    use super::*;

    fn line(name: &str, messages: u64) -> Branch {
        Branch { name: name.into(), messages, summary: None, found: WorkingSet::default() }
    }

    fn item(text: &str) -> Item {
        Item { id: "1".into(), text: text.into(), source: ItemSource::Rule, message_id: None }
    }

    #[test]
    fn both_lines_are_told_and_what_contradicts() {
        let decisions = vec![item("Keep\nthe rows.")];
        let a = Branch {
            summary: Some("The rows were kept.".into()),
            found: WorkingSet { decisions, ..WorkingSet::default() },
            ..line("one", 3)
        };
        let text = build_merge_report(2, [&a, &line("two", 0)], &[item("one: “x” – two: “y”")], None);
        assert_eq!(
            text,
            "This conversation merges two branches: one (3 messages) and two (0 messages). Both start with the 2 messages \
             before this one.\n\nIn one: The rows were kept.\nDecisions: Keep the rows.\n\nIn two: No further messages.\n\n\
             Unresolved conflicts between the two branches; please decide:\n- one: “x” – two: “y”"
        );
    }

    #[test]
    fn a_models_words_take_the_place_of_ours_and_contradictions_stay() {
        let text = build_merge_report(1, [&line("one", 1), &line("two", 1)], &[item("x")], Some("Both did much."));
        assert!(text.contains("\n\nBoth did much.\n\nUnresolved conflicts") && !text.contains("In one"), "{text}");
        assert_eq!(sanitize_merge_report(" \n"), None);
        assert_eq!(
            sanitize_merge_report(&"word ".repeat(5000)).map(|text| text.chars().count() <= MAX_REPORT_CHARS),
            Some(true)
        );
    }
}
