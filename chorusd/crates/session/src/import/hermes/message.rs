//! Parses one message, and leaves out those that a compaction wrote again.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use chorus_proto::{Role, ToolCall};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::PROGRAM;
use crate::import::json_values::{json_string, linked_attachment, minify_value, parse_timestamp};
use crate::import::raw_object::{RawObject, list_entries, string_value};
use crate::import::turn_entry::{CallResult, TurnEntry};

/// Start of a content that is JSON: a list of texts and images.
const PARTS_START: &str = "\0json:";

/// Start of the summary that takes the place of earlier messages.
const SUMMARY_START: &str = "[CONTEXT COMPACTION";

/// Start of a message that the program writes in the user's name.
const NOTICE_START: &str = "[ASYNC DELEGATION";

/// Parses messages in order.
#[derive(Debug, Default)]
pub(super) struct MessageReader {
    seen: HashSet<u64>,
    newest: Option<Timestamp>,
    /// The time of the last summary. The messages that it keeps are written again with this time.
    summarized_at: Option<Timestamp>,
}

impl MessageReader {
    /// Parses a message. Returns `None` for one that is not part of the conversation.
    pub(super) fn parse(&mut self, fields: &RawObject<'_>, conversation: &str) -> Result<Option<TurnEntry>, String> {
        let role = fields.get_text("role").ok_or("no role")?;
        let role = match role.as_ref() {
            "user" | "tool" => Role::User,
            "assistant" => Role::Assistant,
            "system" | "session_meta" => return Ok(None),
            other => return Err(format!("unknown role {:?}", other.chars().take(40).collect::<String>())),
        };
        let at = fields.get("timestamp").and_then(parse_timestamp);
        let content = fields.get_text("content").unwrap_or_default();
        let is_summary = content.starts_with(SUMMARY_START);
        if self.is_repeated(fields, at) {
            return Ok(None);
        }
        if is_summary {
            self.summarized_at = at;
        }
        let mut entry = TurnEntry::new(PROGRAM, if is_summary { Role::System } else { role });
        entry.by_program = content.starts_with(NOTICE_START);
        entry.id = fields.get("id").map(|id| format!("{conversation}-{}", id.get().trim_matches('"')));
        entry.at = at;
        match content.strip_prefix(PARTS_START) {
            Some(parts) => add_parts(parts, &mut entry)?,
            None => entry.texts.extend(Some(content.clone().into_owned()).filter(|text| !text.is_empty())),
        }
        if let Some(call) = fields.get_text("tool_call_id") {
            entry.results.push(CallResult {
                call: call.into_owned(),
                name: fields.get_text("tool_name").map(String::from),
                text: std::mem::take(&mut entry.texts).join("\n"),
                attachments: std::mem::take(&mut entry.attachments),
                is_error: is_failure(&content),
                at: None,
            });
            return Ok(Some(entry));
        }
        add_calls(fields, &mut entry);
        if let Some(reasoning) = fields.get("reasoning") {
            entry.extra.push(("reasoning".into(), minify_value(reasoning)));
        }
        Ok(Some(entry))
    }

    /// Returns whether a compaction wrote an earlier message again: as old as before, or as new as the summary.
    fn is_repeated(&mut self, fields: &RawObject<'_>, at: Option<Timestamp>) -> bool {
        let mut hasher = DefaultHasher::new();
        for name in ["role", "content", "tool_calls", "tool_call_id"] {
            fields.get(name).map(RawValue::get).hash(&mut hasher);
        }
        let is_new = self.seen.insert(hasher.finish());
        let is_older = at.is_some_and(|at| self.newest.is_some_and(|newest| at < newest));
        let is_of_summary = at.is_some_and(|at| {
            self.summarized_at.is_some_and(|summary| (at.as_second() - summary.as_second()).abs() <= 1)
        });
        self.newest = self.newest.max(at);
        !is_new && (is_older || is_of_summary)
    }
}

fn add_parts(parts: &str, entry: &mut TurnEntry) -> Result<(), String> {
    let parts: &RawValue = serde_json::from_str(parts).map_err(|_| "content is not valid JSON")?;
    for raw in list_entries(parts).ok_or("content is not a list of parts")? {
        let Some(part) = RawObject::from_value(raw) else { continue };
        let image = part
            .get("image_url")
            .and_then(|image| string_value(image).or_else(|| RawObject::from_value(image)?.get_text("url")));
        if let Some(url) = image {
            entry.attachments.push(linked_attachment(entry.attachments.len() + 1, "image", &url));
        } else if let Some(text) = part.get_text("text") {
            entry.texts.push(text.into_owned());
        }
    }
    Ok(())
}

fn add_calls(fields: &RawObject<'_>, entry: &mut TurnEntry) {
    let Some(raw) = fields.get("tool_calls") else { return };
    // The column has JSON in a string.
    let inside = string_value(raw).and_then(|text| RawValue::from_string(text.into_owned()).ok());
    for raw in list_entries(inside.as_deref().unwrap_or(raw)).unwrap_or_default() {
        match RawObject::from_value(raw).as_ref().and_then(parse_call) {
            Some(call) => entry.calls.push(call),
            None => entry.extra.push(("tool_calls".into(), minify_value(raw))),
        }
    }
}

fn parse_call(fields: &RawObject<'_>) -> Option<ToolCall> {
    let function = RawObject::from_value(fields.get("function")?)?;
    let arguments = function.get("arguments");
    let parsed = arguments.and_then(string_value).and_then(|text| RawValue::from_string(text.into_owned()).ok());
    let params = parsed.as_deref().or(arguments).map_or_else(|| json_string(""), minify_value);
    let id = fields.get_text("id").or_else(|| fields.get_text("call_id")).unwrap_or_default().into_owned();
    Some(ToolCall { id, name: function.get_text("name")?.into_owned(), params })
}

/// Returns whether the result of a command says that it failed.
fn is_failure(content: &str) -> bool {
    let Ok(result) = RawObject::from_bytes(content.as_bytes()) else { return false };
    result.get_parsed("exit_code").is_some_and(|status: i64| status != 0)
        || result.get_text("error").is_some_and(|error| !error.is_empty())
}
