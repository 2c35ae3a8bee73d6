//! One message of a session file: kept as it is where it is whole, filled in where schema 1 left something out.

use std::borrow::Cow;

use chorus_proto::Message;
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::fields::{Fields, reason};
use super::super::openai;
use super::super::values::{squeeze, string, timestamp};

/// Reads a message and its serialised form on one line.
pub(super) fn read<'a>(
    bytes: &'a [u8],
    time: Timestamp,
    new_id: &mut dyn FnMut() -> String,
) -> Result<(Message, Cow<'a, str>), String> {
    let fields = Fields::read(bytes)?;
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let text = if text.contains(['\n', '\r']) { Cow::Owned(squeeze(text)) } else { Cow::Borrowed(text) };
    if let Ok(message) = serde_json::from_str(&text) {
        return Ok((message, text));
    }
    let filled = fill(&fields, time, new_id);
    match serde_json::from_str::<Message>(&filled) {
        Ok(message) => Ok((message, Cow::Owned(filled))),
        // Early files held messages the way a provider's API spells them.
        Err(error) => match openai::message(&fields, time, new_id) {
            Ok(mut message) => {
                message.source = None;
                let json = serde_json::to_string(&message).map_err(|error| reason(&error))?;
                Ok((message, Cow::Owned(json)))
            }
            Err(_) => Err(format!("not a message: {}", reason(&error))),
        },
    }
}

/// The message with an id, a time and a content, everything else as it was.
fn fill(fields: &Fields<'_>, time: Timestamp, new_id: &mut dyn FnMut() -> String) -> String {
    let mut parts = Vec::new();
    let mut put = |key: &str, value: &RawValue| parts.push(format!("{}:{}", string(key).get(), value.get()));
    if fields.text("id").is_none() {
        put("id", &string(&new_id()));
    }
    let own = fields.get("timestamp").and_then(timestamp);
    let readable = fields.parse::<Timestamp>("timestamp").is_some();
    if !readable {
        put("timestamp", &string(&own.unwrap_or(time).to_string()));
    }
    if !fields.has("content") {
        put("content", &string(""));
    }
    for (key, value) in fields.iter() {
        let replaced = match key {
            "id" => fields.text("id").is_none(),
            "timestamp" => !readable,
            _ => value.get() == "null",
        };
        match (key, value.get()) {
            _ if replaced => {}
            ("role", "\"tool\"") => put(key, &string("tool_result")),
            _ => put(key, value),
        }
    }
    squeeze(&format!("{{{}}}", parts.join(",")))
}
