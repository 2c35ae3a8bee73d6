//! Parses a message.

use std::borrow::Cow;

use chorus_proto::{Role, ToolCall, Usage};
use serde_json::value::RawValue;

use super::PROGRAM;
use super::details::{Details, Piece, cut};
use crate::import::json_values::{json_string, linked_attachment, minify_value, parse_timestamp, text_attachment};
use crate::import::raw_object::{RawObject, list_entries, string_value};
use crate::import::sink::ImportedMetadata;
use crate::import::turn_entry::{CallResult, TurnEntry, TurnSequence};

/// Fields that a message has no place for.
const KEPT_FIELDS: [&str; 3] = ["error", "sources", "annotation"];

/// Parses a message. Returns the reason if it is not one.
pub(super) fn parse(fields: &RawObject<'_>, about: &mut ImportedMetadata) -> Result<Vec<TurnEntry>, String> {
    let role = match fields.get_text("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some(other) => return Err(format!("unknown role {:?}", other.chars().take(40).collect::<String>())),
        None => return Err("no role".into()),
    };
    let mut turns = TurnSequence::new(TurnEntry {
        id: fields.get_filled("id"),
        at: fields.get("timestamp").and_then(parse_timestamp),
        ..TurnEntry::new(PROGRAM, role)
    });
    let first = turns.current();
    if role == Role::Assistant {
        first.model = fields.get_filled("model");
        about.model = first.model.clone().or(about.model.take());
        let usage = fields.get("usage").or_else(|| fields.get("info")).and_then(RawObject::from_value);
        first.usage = usage.as_ref().map(parse_usage);
    }
    for name in KEPT_FIELDS {
        first.extra.extend(
            fields.get(name).filter(|value| value.get() != "[]").map(|value| (name.into(), minify_value(value))),
        );
    }
    for file in
        fields.get("files").and_then(list_entries).unwrap_or_default().into_iter().filter_map(RawObject::from_value)
    {
        add_file(&file, first);
    }
    let content = fields.get("content");
    for part in content.and_then(list_entries).unwrap_or_default() {
        add_part(part, &mut turns);
    }
    match content.and_then(string_value) {
        Some(text) if role == Role::Assistant => add_text(&text, &mut turns),
        Some(text) => turns.current().texts.extend(Some(text.into_owned()).filter(|text| !text.is_empty())),
        None => {}
    }
    Ok(turns.into_entries())
}

fn add_text(content: &str, turns: &mut TurnSequence) {
    for piece in cut(content) {
        match piece {
            Piece::Text(text) => {
                let text = text.trim();
                turns.current().texts.extend(Some(text.to_owned()).filter(|text| !text.is_empty()));
            }
            Piece::Block(block) => match block.kind() {
                "reasoning" => {
                    let lines = block.inside.lines().map(|line| line.strip_prefix("> ").unwrap_or(line));
                    let text = lines.collect::<Vec<_>>().join("\n");
                    turns.current().extra.push(("reasoning".into(), json_string(&text)));
                }
                "tool_calls" => add_call(&block, turns),
                _ => turns.current().texts.push(block.whole.to_owned()),
            },
        }
    }
}

fn add_call(block: &Details<'_>, turns: &mut TurnSequence) {
    let id = block.attribute("id").unwrap_or_default();
    let name = block.attribute("name").filter(|name| !name.is_empty()).unwrap_or_else(|| "tool".into());
    turns.add_call(ToolCall {
        id: id.clone(),
        name: name.clone(),
        params: decoded(&block.attribute("arguments").unwrap_or_default()),
    });
    if let Some(result) = block.attribute("result") {
        let text = decoded(&result);
        let text = string_value(&text).map_or_else(|| text.get().to_owned(), Cow::into_owned);
        turns.add_result(CallResult { call: id, name: Some(name), text, ..CallResult::default() });
    }
}

/// Decodes JSON, which can be a string that holds JSON. What is not JSON becomes a string.
fn decoded(json: &str) -> Box<RawValue> {
    let Ok(value) = RawValue::from_string(json.to_owned()) else { return json_string(json) };
    let inside = string_value(&value).and_then(|text| RawValue::from_string(text.into_owned()).ok());
    minify_value(inside.as_deref().unwrap_or(&value))
}

fn add_part(raw: &RawValue, turns: &mut TurnSequence) {
    let part = RawObject::from_value(raw);
    let entry = turns.current();
    let url = part.as_ref().and_then(|part| RawObject::from_value(part.get("image_url")?)?.get_text("url"));
    if let Some(text) = part.as_ref().and_then(|part| part.get_text("text")) {
        entry.texts.push(text.into_owned());
    } else if let Some(url) = url {
        let number = entry.attachments.len() + 1;
        entry.attachments.push(linked_attachment(number, "image", &url));
    } else {
        entry.extra.push(("parts".into(), minify_value(raw)));
    }
}

/// Adds a file: an image as a link or data, or a document, whose text the chat can have.
fn add_file(file: &RawObject<'_>, entry: &mut TurnEntry) {
    let inner = file.get("file").and_then(RawObject::from_value);
    let data = inner.as_ref().and_then(|inner| RawObject::from_value(inner.get("data")?)?.get_filled("content"));
    let name = file.get_filled("name").or_else(|| inner.as_ref()?.get_filled("filename"));
    if let Some(text) = data {
        entry.attachments.push(text_attachment(name.unwrap_or_else(|| "document".into()), &text));
        return;
    }
    let kind = file.get_filled("type").unwrap_or_else(|| "file".into());
    let url = file.get_text("url").unwrap_or_default();
    let mut attachment = linked_attachment(entry.attachments.len() + 1, &kind, &url);
    attachment.url = attachment.url.filter(|url| !url.is_empty());
    attachment.name = name.unwrap_or(attachment.name);
    entry.attachments.push(attachment);
}

/// Parses token counts, which have other names for some providers.
fn parse_usage(usage: &RawObject<'_>) -> Usage {
    let count = |names: [&str; 3]| names.into_iter().find_map(|name| usage.get_u64(name));
    Usage {
        input_tokens: count(["prompt_tokens", "input_tokens", "prompt_eval_count"]),
        output_tokens: count(["completion_tokens", "output_tokens", "eval_count"]),
        ..Usage::default()
    }
}
