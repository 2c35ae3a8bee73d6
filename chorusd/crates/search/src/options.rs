//! The options that decide the content of an index besides the messages.

use serde::{Deserialize, Serialize};
use tantivy::tokenizer::Language;

/// Version of the files. An index of another one is rebuilt.
const FORMAT: u32 = 3;

/// Options of an index. An index that was made with others is rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexOptions {
    /// The language whose word endings are ignored; `None` if none are.
    pub(crate) language: Option<Language>,
    /// Decided by the caller; noted so that a change rebuilds the index.
    pub(crate) tool_results: bool,
}

impl IndexOptions {
    /// Creates options: the name of a language in English and lower case (an unknown one has no word endings), and whether the
    /// texts that are indexed contain the results of tools.
    #[must_use]
    pub fn new(language: &str, tool_results: bool) -> Self {
        let language = serde_json::from_value(serde_json::Value::String(capitalised(language))).ok();
        Self { language, tool_results }
    }

    pub(crate) fn note(self) -> OptionsNote {
        OptionsNote { format: FORMAT, language: self.language, tool_results: self.tool_results }
    }
}

fn capitalised(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The options as they are noted beside the index.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OptionsNote {
    format: u32,
    language: Option<Language>,
    tool_results: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_their_names() {
        assert_eq!(IndexOptions::new("german", false).language, Some(Language::German));
        assert_eq!(IndexOptions::new("none", false).language, None);
    }
}
