//! Parses messages in the form of Anthropic's API. Tool results are part of a user's message there and become messages
//! of their own.

use chorus_proto::{Message, Role};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::anthropic_blocks::content::parse_content;
use super::super::anthropic_blocks::message_builder::{ANTHROPIC, MessageBuilder, parse_usage, tool_result_message};
use super::super::json_values::import_source;
use super::super::raw_object::RawObject;
use super::message::TIME_FIELDS;

/// The format that is recorded as the source of these messages.
pub(super) const SOURCE_FORMAT: &str = ANTHROPIC;

/// Fields that a message has a place for, or that say nothing about the conversation.
const KNOWN_FIELDS: [&str; 6] = ["role", "content", "id", "type", "usage", "parentId"];

/// Returns the messages of an entry, or the reason if there are none.
pub(super) fn parse_messages(
    fields: &RawObject<'_>,
    role: Role,
    raw: &RawValue,
    at: Timestamp,
    new_id: &mut dyn FnMut() -> String,
) -> Result<Vec<Message>, String> {
    let mut draft = MessageBuilder::new(ANTHROPIC);
    draft.set_usage(parse_usage(fields.get("usage")));
    let results = draft.add_content(parse_content(raw)?);
    let mut id = fields.get_text("id").filter(|id| !id.is_empty()).map(String::from);
    // The id belongs to the text or, without any, to the first tool result.
    let mut messages = Vec::with_capacity(results.len() + 1);
    let words = (!draft.is_empty()).then(|| id.take().unwrap_or_else(&mut *new_id));
    for output in results {
        let id = id.take().unwrap_or_else(&mut *new_id);
        messages.push(tool_result_message(output, None, id, at, import_source(SOURCE_FORMAT)));
    }
    if let Some(id) = words {
        let without = |key: &str| !KNOWN_FIELDS.contains(&key) && !TIME_FIELDS.contains(&key);
        for (key, value) in fields.iter().filter(|(key, value)| without(key) && value.get() != "null") {
            draft.keep_field(key, value);
        }
        messages.push(draft.finish(role, id, at, import_source(SOURCE_FORMAT)));
    }
    Ok(messages)
}
