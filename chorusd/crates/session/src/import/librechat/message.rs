//! Parses a message. Its parts can be texts, thoughts, and tool calls with their results.

use std::borrow::Cow;

use chorus_proto::{Attachment, Role, ToolCall, Usage};
use serde_json::value::RawValue;

use super::PROGRAM;
use crate::import::json_values::{json_string, linked_attachment, minify_value, parse_timestamp, text_attachment};
use crate::import::raw_object::{RawObject, list_entries, string_value};
use crate::import::sink::ImportedMetadata;
use crate::import::turn_entry::{CallResult, TurnEntry, TurnSequence};

/// Parses a message. Returns the reason if it is not one.
pub(super) fn parse(fields: &RawObject<'_>, about: &mut ImportedMetadata) -> Result<Vec<TurnEntry>, String> {
    if !fields.has("text") && !fields.has("content") {
        return Err("a message without text and content".into());
    }
    let role = if fields.is_true("isCreatedByUser") { Role::User } else { Role::Assistant };
    let mut turns = TurnSequence::new(TurnEntry {
        id: fields.get_filled("messageId"),
        at: fields.get("createdAt").and_then(parse_timestamp),
        ..TurnEntry::new(PROGRAM, role)
    });
    let first = turns.current();
    if role == Role::Assistant {
        first.model = fields.get_filled("model");
        about.model = first.model.clone().or(about.model.take());
        // What the reply itself has; the tokens of the request are not known.
        first.usage =
            fields.get_u64("tokenCount").map(|count| Usage { output_tokens: Some(count), ..Usage::default() });
    }
    for name in ["files", "attachments"] {
        add_files(fields.get(name), first);
    }
    let parts = fields.get("content").and_then(list_entries).unwrap_or_default();
    for raw in &parts {
        add_part(raw, &mut turns);
    }
    if parts.is_empty()
        && let Some(text) = fields.get_text("text").filter(|text| !text.is_empty())
    {
        turns.current().texts.push(text.into_owned());
    }
    if fields.is_true("error") {
        turns.current().extra.push(("error".into(), json_string("the model returned an error")));
    }
    Ok(turns.into_entries())
}

fn add_part(raw: &RawValue, turns: &mut TurnSequence) {
    let Some(part) = RawObject::from_value(raw) else { return };
    match part.get_text("type").unwrap_or_default().as_ref() {
        "text" => {
            let nested = || RawObject::from_value(part.get("text")?)?.get_text("value");
            let text = part.get_text("text").or_else(nested).filter(|text| !text.is_empty());
            turns.current().texts.extend(text.map(Cow::into_owned));
        }
        "tool_call" => match part.get("tool_call").and_then(RawObject::from_value) {
            Some(call) => add_call(&call, turns),
            None => turns.current().extra.push(("parts".into(), minify_value(raw))),
        },
        "image_file" => add_files(part.get("image_file"), turns.current()),
        // Thoughts, errors, and parts that are not known.
        _ => turns.current().extra.push(("parts".into(), minify_value(raw))),
    }
}

fn add_call(call: &RawObject<'_>, turns: &mut TurnSequence) {
    let function = call.get("function").and_then(RawObject::from_value);
    let inner = function.as_ref().unwrap_or(call);
    let id = call.get_text("id").unwrap_or_default().into_owned();
    let name = inner.get_text("name").unwrap_or_else(|| "tool".into()).into_owned();
    let arguments = inner.get("args").or_else(|| inner.get("arguments"));
    let parsed = arguments.and_then(string_value).and_then(|text| RawValue::from_string(text.into_owned()).ok());
    let params = parsed.as_deref().or(arguments).map_or_else(|| json_string(""), minify_value);
    turns.add_call(ToolCall { id: id.clone(), name: name.clone(), params });
    if let Some(output) = inner.get("output") {
        let text = string_value(output).map_or_else(|| output.get().to_owned(), Cow::into_owned);
        turns.add_result(CallResult { call: id, name: Some(name), text, ..CallResult::default() });
    }
}

/// Adds a file, or a list of files. Their content is on the server, except for texts that were attached.
fn add_files(raw: Option<&RawValue>, entry: &mut TurnEntry) {
    let Some(raw) = raw else { return };
    for file in list_entries(raw).unwrap_or_else(|| vec![raw]).into_iter().filter_map(RawObject::from_value) {
        let name = file.get_filled("filename").or_else(|| file.get_filled("file_id")).unwrap_or_else(|| "file".into());
        if let Some(text) = file.get_filled("text") {
            entry.attachments.push(text_attachment(name, &text));
            continue;
        }
        let unknown =
            Attachment { name: String::new(), media_type: None, size: None, path: None, url: None, data: None };
        let linked = file.get_filled("filepath").map(|path| linked_attachment(1, "file", &path)).unwrap_or(unknown);
        let media_type = linked.media_type.or_else(|| file.get_filled("type").filter(|kind| kind.contains('/')));
        let size = linked.size.or_else(|| file.get_u64("bytes"));
        entry.attachments.push(Attachment { name, media_type, size, ..linked });
    }
}
