//! Removes the marker before a statement, as in `Decision: we use ed25519`: the list that holds the statement says the same.

/// Markers in lower case, in the languages of the rules.
const MARKERS: &[&str] = &[
    "decision",
    "decisions",
    "decided",
    "final decision",
    "agreed",
    "todo",
    "todos",
    "to do",
    "to-do",
    "to-dos",
    "fixme",
    "noted",
    "note",
    "task",
    "open task",
    "open tasks",
    "action item",
    "action items",
    "reminder",
    "entscheidung",
    "entschieden",
    "beschlossen",
    "aufgabe",
    "notiz",
    "décision",
    "décidé",
    "à faire",
    "tâche",
    "decisión",
    "decidido",
    "tarea",
    "nota",
    "决定",
    "決定",
    "待办",
    "待辦",
];

/// Characters between a marker and its statement.
const SEPARATORS: [&str; 5] = [":", "：", " - ", " – ", " — "];

/// Returns the text without the markers at its start; the text itself if nothing else is left.
pub(super) fn strip_markers(text: &str) -> &str {
    let mut rest = text.trim();
    while let Some(after) = strip_one(rest).filter(|after| after.chars().any(char::is_alphanumeric)) {
        rest = after;
    }
    rest
}

fn strip_one(text: &str) -> Option<&str> {
    // In capitals, these need no separator.
    for word in ["TODO ", "FIXME "] {
        if let Some(rest) = text.strip_prefix(word) {
            return Some(rest.trim_start());
        }
    }
    let ends = SEPARATORS.iter().filter_map(|separator| Some((text.find(separator)?, separator.len())));
    let (end, length) = ends.min()?;
    let label = text[..end].trim().to_lowercase();
    MARKERS.contains(&label.as_str()).then(|| text[end + length..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::strip_markers;

    #[test]
    fn markers_go_and_nothing_else() {
        for (text, rest) in [
            ("Decision: we use ed25519.", "we use ed25519."),
            ("Noted: TODO write bench/crypto.md.", "write bench/crypto.md."),
            ("TODO: FIXME: a: b", "a: b"),
            ("to-do - write it", "write it"),
            ("Note : it is pending", "it is pending"),
            ("Décision : on garde", "on garde"),
            ("决定：保留旧的表。", "保留旧的表。"),
            ("Decision on keys: ed25519", "Decision on keys: ed25519"),
            ("Todo items are pending", "Todo items are pending"),
            ("TODO:", "TODO:"),
            ("", ""),
        ] {
            assert_eq!(strip_markers(text), rest);
        }
    }
}
