//! The two statements of a conflict.

/// The statements of a conflict, without what names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictSides {
    pub a: String,
    pub b: String,
}

impl ConflictSides {
    /// Parses the text of a conflict: `X: “a” – Y: “b”` as a merge lists it, or `earlier: a; later: b` as a compaction
    /// does. Returns `None` for another text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some((a, b)) = text.strip_prefix("earlier: ").and_then(|text| text.split_once("; later: ")) {
            return Some(Self { a: a.to_owned(), b: b.to_owned() });
        }
        let (_, rest) = text.split_once(": “")?;
        let (a, rest) = rest.split_once("” – ")?;
        let (_, b) = rest.split_once(": “")?;
        Some(Self { a: a.to_owned(), b: b.strip_suffix('”')?.to_owned() })
    }
}

/// Returns whether `text` is the statement. A conflict quotes a statement as one line, and the beginning of a long one.
pub(super) fn is_statement(statement: &str, text: &str) -> bool {
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let bare = |text: &str| text.trim_end_matches(['.', '!', ' ']).to_lowercase();
    let text = line(text);
    match statement.strip_suffix('…') {
        Some(start) => !start.trim().is_empty() && text.to_lowercase().starts_with(&start.trim().to_lowercase()),
        None => bare(&text) == bare(&line(statement)),
    }
}
