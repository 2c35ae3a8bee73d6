//! Parses one message of a session file. A complete message is kept byte for byte; fields that schema 1 may omit are
//! filled in.

use std::borrow::Cow;

use chorus_proto::Message;
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::json_values::{json_string, minify_json, parse_timestamp};
use super::super::openai;
use super::super::raw_object::{RawObject, error_reason};

/// Parses a message. Returns it with its serialised form on one line.
pub(super) fn parse<'a>(
    bytes: &'a [u8],
    time: Timestamp,
    new_id: &mut dyn FnMut() -> String,
) -> Result<(Message, Cow<'a, str>), String> {
    let fields = RawObject::from_bytes(bytes)?;
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let text = if text.contains(['\n', '\r']) { Cow::Owned(minify_json(text)) } else { Cow::Borrowed(text) };
    if let Ok(message) = serde_json::from_str(&text) {
        return Ok((message, text));
    }
    let filled = fill_missing_fields(&fields, time, new_id);
    match serde_json::from_str::<Message>(&filled) {
        Ok(message) => Ok((message, Cow::Owned(filled))),
        // Early files have messages in the form of a provider's API.
        Err(error) => match openai::parse_message(&fields, time, new_id) {
            Ok(mut message) => {
                message.source = None;
                let json = serde_json::to_string(&message).map_err(|error| error_reason(&error))?;
                Ok((message, Cow::Owned(json)))
            }
            Err(_) => Err(format!("not a message: {}", error_reason(&error))),
        },
    }
}

/// Adds an id, a time and a content if they are missing. Other fields stay as they are.
fn fill_missing_fields(fields: &RawObject<'_>, time: Timestamp, new_id: &mut dyn FnMut() -> String) -> String {
    let mut parts = Vec::new();
    let mut put = |key: &str, value: &RawValue| parts.push(format!("{}:{}", json_string(key).get(), value.get()));
    if fields.get_text("id").is_none() {
        put("id", &json_string(&new_id()));
    }
    let own = fields.get("timestamp").and_then(parse_timestamp);
    let readable = fields.get_parsed::<Timestamp>("timestamp").is_some();
    if !readable {
        put("timestamp", &json_string(&own.unwrap_or(time).to_string()));
    }
    if !fields.has("content") {
        put("content", &json_string(""));
    }
    for (key, value) in fields.iter() {
        let replaced = match key {
            "id" => fields.get_text("id").is_none(),
            "timestamp" => !readable,
            _ => value.get() == "null",
        };
        match (key, value.get()) {
            _ if replaced => {}
            ("role", "\"tool\"") => put(key, &json_string("tool_result")),
            _ => put(key, value),
        }
    }
    minify_json(&format!("{{{}}}", parts.join(",")))
}
