//! Parses the parts of a message.

use chorus_proto::{Attachment, Role, ToolCall};
use serde_json::value::RawValue;

use crate::import::json_values::{json_string, linked_attachment, minify_value, parse_timestamp, text_attachment};
use crate::import::raw_object::{RawObject, string_value};
use crate::import::turn_entry::{CallResult, TurnEntry};

/// Parts that say nothing about the conversation, or repeat it.
const IGNORED_PARTS: [&str; 6] = ["step-start", "step-finish", "snapshot", "patch", "compaction", "retry"];

/// Adds the parts of a message.
pub(super) fn add_parts(parts: &[&RawValue], entry: &mut TurnEntry) {
    let mut program_texts = Vec::new();
    for raw in parts {
        let Some(part) = RawObject::from_value(raw) else { continue };
        let kind = part.get_text("type").unwrap_or_default();
        match kind.as_ref() {
            "text" => {
                let Some(text) = part.get_text("text").filter(|text| !text.is_empty()) else { continue };
                if part.is_true("synthetic") && entry.role == Role::User {
                    program_texts.push(text.into_owned());
                } else {
                    entry.texts.push(text.into_owned());
                }
            }
            "tool" => add_call(raw, &part, entry),
            "file" => entry.attachments.extend(parse_file(&part, entry.attachments.len() + 1)),
            kind if IGNORED_PARTS.contains(&kind) => {}
            kind => {
                let kind = if kind.is_empty() { "part" } else { kind };
                entry.extra.push((kind.to_owned(), minify_value(raw)));
            }
        }
    }
    add_program_texts(program_texts, entry);
}

/// Adds text that the program wrote in the user's name: contents of files that the person named, or a message of its own.
fn add_program_texts(texts: Vec<String>, entry: &mut TurnEntry) {
    if texts.is_empty() {
        return;
    }
    if entry.texts.is_empty() {
        entry.by_program = true;
        entry.texts = texts;
        return;
    }
    entry.attachments.push(text_attachment("added-by-opencode.txt", &texts.join("\n\n")));
}

fn add_call(raw: &RawValue, part: &RawObject<'_>, entry: &mut TurnEntry) {
    let (Some(name), Some(state)) = (part.get_text("tool"), part.get("state").and_then(RawObject::from_value)) else {
        entry.extra.push(("tool".into(), minify_value(raw)));
        return;
    };
    let call = part.get_text("callID").or_else(|| part.get_text("id")).unwrap_or_default().into_owned();
    let params = state.get("input").map_or_else(|| json_string(""), minify_value);
    entry.calls.push(ToolCall { id: call.clone(), name: name.clone().into_owned(), params });
    let status = state.get_text("status").unwrap_or_default();
    let is_error = status == "error";
    let said = if is_error { state.get("error").or_else(|| state.get("output")) } else { state.get("output") };
    if !matches!(status.as_ref(), "completed" | "error") {
        return;
    }
    let exit = state.get("metadata").and_then(RawObject::from_value).and_then(|metadata| metadata.get_parsed("exit"));
    let mut result = CallResult {
        call,
        name: Some(name.into_owned()),
        text: said.map_or_else(String::new, |said| string_value(said).map_or_else(|| said.get().into(), Into::into)),
        is_error: is_error || exit.is_some_and(|status: i64| status != 0),
        at: state
            .get("time")
            .and_then(RawObject::from_value)
            .and_then(|time| time.get("end").and_then(parse_timestamp)),
        attachments: Vec::new(),
    };
    for raw in state.get("attachments").and_then(crate::import::raw_object::list_entries).unwrap_or_default() {
        let file = RawObject::from_value(raw).and_then(|file| parse_file(&file, result.attachments.len() + 1));
        result.attachments.extend(file);
    }
    entry.results.push(result);
}

fn parse_file(part: &RawObject<'_>, number: usize) -> Option<Attachment> {
    let mut file = linked_attachment(number, "file", &part.get_text("url")?);
    file.media_type = part.get_text("mime").map(String::from).or(file.media_type);
    if let Some(name) = part.get_text("filename").filter(|name| !name.is_empty()) {
        file.name = name.into_owned();
    }
    Some(file)
}
