//! A message in the shape of Anthropic's API: results of tools stand in a message of the user and become messages of their own.

use chorus_proto::{Message, Role};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::anthropic::content::content;
use super::super::anthropic::draft::{ANTHROPIC, Draft, result, usage};
use super::super::fields::Fields;
use super::super::values::source;
use super::message::TIMES;

/// What messages say that they came from.
pub(super) const FORMAT: &str = ANTHROPIC;

/// Fields that have a place in a message, or say nothing about the conversation.
const PLACED: [&str; 6] = ["role", "content", "id", "type", "usage", "parentId"];

/// The messages of an entry; the reason, where there are none.
pub(super) fn messages(
    fields: &Fields<'_>,
    role: Role,
    raw: &RawValue,
    at: Timestamp,
    new_id: &mut dyn FnMut() -> String,
) -> Result<Vec<Message>, String> {
    let mut draft = Draft::of(ANTHROPIC);
    draft.cost(usage(fields.get("usage")));
    let results = draft.take(content(raw)?);
    let mut id = fields.text("id").filter(|id| !id.is_empty()).map(String::from);
    // The id is that of the words, or, without any, of the first result.
    let mut messages = Vec::with_capacity(results.len() + 1);
    let words = (!draft.is_empty()).then(|| id.take().unwrap_or_else(&mut *new_id));
    for output in results {
        let id = id.take().unwrap_or_else(&mut *new_id);
        messages.push(result(output, None, id, at, source(FORMAT)));
    }
    if let Some(id) = words {
        let without = |key: &str| !PLACED.contains(&key) && !TIMES.contains(&key);
        for (key, value) in fields.iter().filter(|(key, value)| without(key) && value.get() != "null") {
            draft.keep(key, value);
        }
        messages.push(draft.finish(role, id, at, source(FORMAT)));
    }
    Ok(messages)
}
