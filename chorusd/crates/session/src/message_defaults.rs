//! Fields that the messages of old session files lack.

use bytes::Bytes;
use chorus_base::json_minify::minify_json;
use jiff::Timestamp;
use serde::Deserialize;

use crate::file::FormatError;
use crate::stored_message::StoredMessage;

/// Defaults for fields that messages lack: a message of schema 1 without a time gets the time of the save.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageDefaults(pub(crate) Option<Timestamp>);

impl MessageDefaults {
    /// Parses the message at `index` from its JSON in the file, filling in what it lacks.
    pub(crate) fn parse_message(self, json: Bytes, index: u64) -> Result<StoredMessage, FormatError> {
        let wrong = |reason: String| FormatError::Message { number: index + 1, reason };
        let json = match json.contains(&b'\n') {
            true => Bytes::from(minify_json(std::str::from_utf8(&json).map_err(|e| wrong(e.to_string()))?)),
            false => json,
        };
        let json = match self.0 {
            Some(saved_at) => add_missing_fields(json, index, saved_at),
            None => json,
        };
        StoredMessage::parse(json).map_err(|e| wrong(e.to_string()))
    }
}

/// Adds the fields that schema 1 does not require: the message's number as its id, and the time of the save.
fn add_missing_fields(json: Bytes, index: u64, saved_at: Timestamp) -> Bytes {
    #[derive(Deserialize)]
    struct Has {
        id: Option<serde::de::IgnoredAny>,
        timestamp: Option<serde::de::IgnoredAny>,
    }
    let Ok(has) = serde_json::from_slice::<Has>(&json) else { return json };
    let mut start = String::from("{");
    if has.id.is_none() {
        start.push_str(&format!("\"id\":\"{}\",", index + 1));
    }
    if has.timestamp.is_none() {
        start.push_str(&format!("\"timestamp\":\"{saved_at}\","));
    }
    let mut whole = start.into_bytes();
    // White space around tokens is gone by now, so a JSON object begins with its brace.
    whole.extend_from_slice(json.strip_prefix(b"{").unwrap_or(&json));
    whole.into()
}
