//! Parses a message. A reply can hold several texts, with tool calls and their results between them.

use std::borrow::Cow;

use chorus_proto::{Attachment, Role, ToolCall};
use serde_json::value::RawValue;

use super::PROGRAM;
use crate::import::json_values::{json_string, minify_value, parse_timestamp, text_attachment};
use crate::import::raw_object::{RawObject, list_entries, string_value};
use crate::import::turn_entry::{CallResult, TurnEntry, TurnSequence};

/// Blocks about the program, which are no part of the conversation.
const IGNORED_BLOCKS: [&str; 2] = ["token_budget", "flag"];

/// Parses a message. Returns the reason if it is not one.
pub(super) fn parse(fields: &RawObject<'_>) -> Result<Vec<TurnEntry>, String> {
    let role = match fields.get_text("sender").as_deref() {
        Some("human") => Role::User,
        Some("assistant") => Role::Assistant,
        Some(other) => return Err(format!("unknown sender {:?}", other.chars().take(40).collect::<String>())),
        None => return Err("no sender".into()),
    };
    let mut turns = TurnSequence::new(TurnEntry {
        id: fields.get_text("uuid").filter(|id| !id.is_empty()).map(String::from),
        at: fields.get("created_at").and_then(parse_timestamp),
        ..TurnEntry::new(PROGRAM, role)
    });
    add_files(fields, turns.current());
    let blocks = fields.get("content").and_then(list_entries).unwrap_or_default();
    for raw in &blocks {
        add_block(raw, &mut turns);
    }
    // Exports before 2025 have the text only here; later ones repeat it.
    if blocks.is_empty()
        && let Some(text) = fields.get_text("text").filter(|text| !text.is_empty())
    {
        turns.current().texts.push(text.into_owned());
    }
    Ok(turns.into_entries())
}

fn add_block(raw: &RawValue, turns: &mut TurnSequence) {
    let Some(block) = RawObject::from_value(raw) else { return };
    let kind = block.get_text("type").unwrap_or_default();
    match kind.as_ref() {
        "text" | "voice_note" => {
            let text = block.get_text("text").filter(|text| !text.trim().is_empty());
            turns.current().texts.extend(text.map(String::from));
            if let Some(citations) = block.get("citations").filter(|list| list.get() != "[]") {
                turns.current().extra.push(("citations".into(), minify_value(citations)));
            }
        }
        "tool_use" => {
            let name = block.get_text("name").unwrap_or_else(|| Cow::from("tool")).into_owned();
            let params = block.get("input").map_or_else(|| json_string(""), minify_value);
            turns.add_call(ToolCall { id: block.get_text("id").unwrap_or_default().into_owned(), name, params });
        }
        "tool_result" => turns.add_result(parse_result(&block)),
        kind if IGNORED_BLOCKS.contains(&kind) => {}
        // Thinking, and blocks that are not known.
        _ => turns.current().extra.push(("blocks".into(), minify_value(raw))),
    }
}

fn parse_result(block: &RawObject<'_>) -> CallResult {
    let content = block.get("content");
    let parts = content.and_then(list_entries).unwrap_or_default();
    let mut texts: Vec<String> = content.and_then(string_value).map(String::from).into_iter().collect();
    for part in parts.into_iter().filter_map(RawObject::from_value) {
        // Results of a search have a title and a link.
        let named = ["title", "url", "text"].iter().filter_map(|name| part.get_text(name));
        texts.push(named.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"));
    }
    texts.retain(|text| !text.is_empty());
    CallResult {
        call: block.get_text("tool_use_id").unwrap_or_default().into_owned(),
        name: block.get_text("name").map(String::from),
        text: texts.join("\n\n"),
        is_error: block.is_true("is_error"),
        ..CallResult::default()
    }
}

/// Adds the attached files. The export has the text of documents, and only the names of others.
fn add_files(fields: &RawObject<'_>, entry: &mut TurnEntry) {
    let listed = |name: &str| fields.get(name).and_then(list_entries).unwrap_or_default();
    for file in listed("attachments").into_iter().filter_map(RawObject::from_value) {
        let name = file.get_text("file_name").filter(|name| !name.is_empty());
        let name = name.map_or_else(|| "pasted.txt".to_owned(), Cow::into_owned);
        entry.attachments.push(match file.get_text("extracted_content") {
            Some(text) => text_attachment(name, &text),
            None => named_attachment(name, file.get_u64("file_size")),
        });
    }
    for file in listed("files").into_iter().filter_map(RawObject::from_value) {
        let name = file.get_text("file_name").or_else(|| file.get_text("file_uuid")).unwrap_or_else(|| "file".into());
        if !entry.attachments.iter().any(|attachment| attachment.name == name) {
            entry.attachments.push(named_attachment(name.into_owned(), file.get_u64("file_size")));
        }
    }
}

fn named_attachment(name: String, size: Option<u64>) -> Attachment {
    Attachment { name, media_type: None, size, path: None, url: None, data: None }
}
