//! The agents there are, as one of them sees the others.

use std::fmt::Write as _;

use uuid::Uuid;

use crate::ops::Ops;

/// The most that are shown.
const MOST: usize = 200;

/// A line for each: its name, its model, and whether it is in a conversation.
pub async fn list(ops: &Ops, asker: Uuid) -> String {
    let all = ops.directory.all();
    let mut text = String::new();
    for entry in all.iter().take(MOST) {
        let model = entry.facts.model.as_deref().unwrap_or("without a model");
        let state = if ops.registry.info(entry.facts.id).is_some() { "active" } else { "idle" };
        let own = if entry.facts.id == asker { " (you)" } else { "" };
        let _ = writeln!(text, "{}{own}: {model}, {state}", entry.facts.name);
    }
    if all.len() > MOST {
        let _ = writeln!(text, "and {} more", all.len() - MOST);
    }
    text
}
