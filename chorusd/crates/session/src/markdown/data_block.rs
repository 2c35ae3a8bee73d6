//! The block of data at the end of a file: an HTML comment that holds everything that the visible lines leave out. A
//! rendered page does not show it.
//!
//! Each line is a JSON object: first [`DataHeader`], then a [`MessageRecord`] for each message, in their order. Double
//! hyphens, which would end the comment, are escaped.

use chorus_proto::{NewMessage, Role};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

/// First line of the block.
pub(crate) const DATA_START: &str = "<!-- chorus data";
/// Last line of the block.
pub(crate) const DATA_END: &str = "-->";

const ESCAPED_HYPHENS: &str = "-\\u002d";

/// The first line inside the block.
#[derive(Debug, Deserialize)]
pub(crate) struct DataHeader<'a> {
    /// The header of the session file.
    #[serde(borrow)]
    pub session: &'a RawValue,
    /// Bytes of the file before the block. If they differ, somebody has edited the file.
    pub text_bytes: u64,
    /// Number of user messages.
    pub queries: u64,
}

/// The line of a message inside the block.
#[derive(Debug, Deserialize)]
pub(crate) struct MessageRecord {
    /// Number of the query section that the message opens.
    #[serde(default)]
    pub query: Option<u64>,
    /// Number of lines in the message's text that look like the label of a speaker.
    #[serde(default)]
    pub labels: u64,
    /// White space before and after the message's text, if that is not in a block.
    #[serde(default)]
    pub before: String,
    #[serde(default)]
    pub after: String,
    /// Ids and names of its tool calls.
    #[serde(default)]
    pub calls: Vec<(String, String)>,
    /// Everything except the text and the tool calls.
    pub message: NewMessage,
}

impl MessageRecord {
    /// Creates the record of a message of which only the role and the time are known.
    #[must_use]
    pub(crate) fn of_role(role: Role, at: Option<Timestamp>) -> Self {
        let message = NewMessage { timestamp: at, ..NewMessage::text(role, "") };
        let (before, after) = (String::new(), String::new());
        Self { query: None, labels: 0, before, after, calls: Vec::new(), message }
    }
}

/// Renders a line of the block from JSON without newlines.
#[must_use]
pub(crate) fn render_data_line(json: &str) -> String {
    format!("{}\n", json.replace("--", ESCAPED_HYPHENS))
}

/// Returns the JSON of a line inside the block.
#[must_use]
pub(crate) fn parse_data_line(line: &str) -> String {
    // Where the JSON itself had the escaped form, both mean the same.
    line.replace(ESCAPED_HYPHENS, "--")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_the_comment_and_every_byte_comes_back() {
        for json in [r#"{"a":"x --> y"}"#, r#"["-","--","---","----","-\\u002d"]"#, r#"{"n":-1.50,"e":1e-9}"#] {
            let line = render_data_line(json);
            assert!(!line.contains("--"), "{line}");
            let read = parse_data_line(line.trim_end());
            assert_eq!(read, json);
        }
    }
}
