//! Renders the working set of a session that continues another one: the summary of what happened before its messages.

use std::fmt::Write as _;

use chorus_proto::{Item, SessionHeader};

use super::texts::without_nul;

/// Returns the text, `None` if there is nothing that the messages do not say.
pub(super) fn render(header: &SessionHeader) -> Option<String> {
    let set = &header.working_set;
    if header.parent_id.is_none() && set.pinned_facts.is_empty() {
        return None;
    }
    let mut text = String::new();
    for (name, said) in [("Background", &set.background), ("Summary", &set.summary)] {
        if let Some(said) = said.as_deref().map(str::trim).filter(|said| !said.is_empty()) {
            let _ = write!(text, "\n\n{name}: {said}");
        }
    }
    for (name, items) in [
        ("Pinned facts", &set.pinned_facts),
        ("Facts", &set.facts),
        ("Decisions", &set.decisions),
        ("Open tasks", &set.open_tasks),
        ("Contradictions", &set.conflicts),
        ("Topics", &set.topics),
        ("Files touched", &set.files_touched),
    ] {
        write_items(&mut text, name, items);
    }
    (!text.is_empty()).then(|| without_nul(text.trim_start().to_owned()))
}

fn write_items(text: &mut String, name: &str, items: &[Item]) {
    if items.is_empty() {
        return;
    }
    // Writing to a String cannot fail.
    let _ = write!(text, "\n\n{name}:");
    for item in items {
        let _ = write!(text, "\n- {}", item.text.trim());
    }
}
