//! The parts of a message that are stored to be shown.

use serde::{Deserialize, Serialize};
use tantivy::TantivyDocument;
use tantivy::schema::{Field, Value as _};

use crate::analysis::begin_of;
use crate::error::SearchError;

/// Bytes of a text that are kept for snippets.
const MAX_TEXT_BYTES: usize = 32 << 10;

/// Bytes of the names of tools.
const MAX_CALLS_BYTES: usize = 512;

/// A message as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShownMessage {
    pub(crate) speaker: String,
    /// Its text, then the commands of its calls.
    pub(crate) text: String,
    /// Names of the tools that it called, as a line.
    calls: String,
}

impl ShownMessage {
    /// Keeps the begins of what is long.
    pub(crate) fn new(speaker: String, text: &str, commands: &[String], tools: &[String]) -> Self {
        let mut shown = begin_of(text, MAX_TEXT_BYTES).to_owned();
        for command in commands {
            if shown.len() + command.len() > MAX_TEXT_BYTES {
                break;
            }
            if !shown.is_empty() {
                shown.push('\n');
            }
            shown.push_str(command);
        }
        let mut names: Vec<&str> = Vec::new();
        for tool in tools {
            if !names.contains(&&**tool) && names.iter().map(|name| name.len()).sum::<usize>() < MAX_CALLS_BYTES {
                names.push(begin_of(tool, MAX_CALLS_BYTES));
            }
        }
        let calls = names.iter().map(|name| format!("→ {name}")).collect::<Vec<_>>().join(" ");
        Self { speaker, text: shown, calls }
    }

    /// Reads what a document has in the field.
    pub(crate) fn read(document: &TantivyDocument, field: Field) -> Result<Self, SearchError> {
        let shown = document.get_first(field).and_then(|value| value.as_bytes()).ok_or(SearchError::Entry)?;
        serde_json::from_slice(shown).map_err(|_| SearchError::Entry)
    }

    /// Returns the text, and behind it the tools: a message may say nothing else.
    pub(crate) fn text_and_calls(self) -> String {
        match (self.text.is_empty(), self.calls.is_empty()) {
            (_, true) => self.text,
            (true, false) => self.calls,
            (false, false) => format!("{}\n{}", self.text, self.calls),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_named_once_and_behind_the_text() {
        let new = |text: &str, commands: &[&str], tools: &[&str]| {
            let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
            ShownMessage::new(String::new(), text, &owned(commands), &owned(tools))
        };
        let message = new("Look:", &["ls -l"], &["bash", "view", "bash"]);
        assert_eq!(message.text, "Look:\nls -l");
        assert_eq!(message.text_and_calls(), "Look:\nls -l\n→ bash → view");
        assert_eq!(new("", &[], &["view"]).text_and_calls(), "→ view");
        assert_eq!(new("text", &[], &[]).text_and_calls(), "text");
        let many: Vec<String> = (0..1000).map(|n| format!("tool_{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(new(&"x".repeat(1 << 20), &[], &many).text_and_calls().len() < MAX_TEXT_BYTES + 1000);
    }
}
