//! Parses one entry of a session.

use chorus_proto::{Role, ToolCall, Usage};
use serde_json::value::RawValue;

use crate::import::json_values::{embedded_attachment, json_string, minify_value, parse_timestamp};
use crate::import::raw_object::{RawObject, list_entries, string_value};
use crate::import::sink::ImportedMetadata;
use crate::import::turn_entry::{CallResult, TurnEntry};

/// Entries that say nothing about the conversation.
const IGNORED_ENTRIES: [&str; 8] =
    ["thinking_level_change", "custom", "label", "session_info", "usage", "context_edit", "reset", "leaf"];

/// Parses entries in order.
#[derive(Debug)]
pub(super) struct EntryReader {
    program: &'static str,
}

impl EntryReader {
    pub(super) fn new(program: &'static str) -> Self {
        Self { program }
    }

    /// Parses an entry. Returns `None` for one that is not part of the conversation.
    pub(super) fn parse(
        &mut self,
        fields: &RawObject<'_>,
        about: &mut ImportedMetadata,
    ) -> Result<Option<TurnEntry>, String> {
        let kind = fields.get_text("type").unwrap_or_default();
        let mut entry = match kind.as_ref() {
            "message" => {
                let message = fields.get("message").and_then(RawObject::from_value).ok_or("no message")?;
                match self.parse_message(&message, about)? {
                    Some(entry) => entry,
                    None => return Ok(None),
                }
            }
            "model_change" => {
                about.model = model_of(fields, "modelId").or(about.model.take());
                return Ok(None);
            }
            "compaction" | "branch_summary" => {
                let mut entry = TurnEntry::new(self.program, Role::System);
                entry.texts.extend(fields.get_text("summary").map(String::from));
                set_usage(&mut entry, fields);
                entry.model.clone_from(&about.model);
                entry
            }
            "custom_message" => {
                let mut entry = TurnEntry::new(self.program, Role::User);
                entry.by_program = true;
                add_content(fields.get("content").ok_or("no content")?, &mut entry)?;
                entry
            }
            kind if IGNORED_ENTRIES.contains(&kind) => return Ok(None),
            kind => return Err(format!("unknown type {:?}", kind.chars().take(40).collect::<String>())),
        };
        entry.id = fields.get_text("id").map(String::from);
        entry.at = fields.get("timestamp").and_then(parse_timestamp).or(entry.at);
        about.started_at = about.started_at.or(entry.at);
        Ok(Some(entry))
    }

    fn parse_message(
        &self,
        message: &RawObject<'_>,
        about: &mut ImportedMetadata,
    ) -> Result<Option<TurnEntry>, String> {
        let role = message.get_text("role").ok_or("no role")?;
        let mut entry = TurnEntry::new(self.program, Role::User);
        entry.at = message.get("timestamp").and_then(parse_timestamp);
        match role.as_ref() {
            "user" => {}
            "assistant" => {
                entry.role = Role::Assistant;
                about.model = model_of(message, "model").or(about.model.take());
                set_usage(&mut entry, message);
                entry.model.clone_from(&about.model);
                if let Some(error) = message.get("errorMessage") {
                    entry.extra.push(("errorMessage".into(), minify_value(error)));
                }
            }
            "toolResult" => {
                add_content(message.get("content").ok_or("no content")?, &mut entry)?;
                entry.results.push(CallResult {
                    call: message.get_text("toolCallId").unwrap_or_default().into_owned(),
                    name: message.get_text("toolName").map(String::from),
                    text: std::mem::take(&mut entry.texts).join("\n"),
                    attachments: std::mem::take(&mut entry.attachments),
                    is_error: message.is_true("isError"),
                    at: None,
                });
                entry.extra.clear();
                return Ok(Some(entry));
            }
            // A command that the user ran.
            "bashExecution" => {
                let text = |name: &str| message.get_text(name).unwrap_or_default();
                entry.texts.push(format!("!{}\n\n{}", text("command"), text("output")));
                return Ok(Some(entry));
            }
            "custom" | "hookMessage" | "branchSummary" | "compactionSummary" => entry.by_program = true,
            // The prompt, which the program repeats.
            "system" => return Ok(None),
            other => return Err(format!("unknown role {:?}", other.chars().take(40).collect::<String>())),
        }
        add_content(message.get("content").or_else(|| message.get("summary")).ok_or("no content")?, &mut entry)?;
        Ok(Some(entry))
    }
}

fn model_of(fields: &RawObject<'_>, name: &str) -> Option<String> {
    let model = fields.get_text(name)?;
    Some(fields.get_text("provider").map_or_else(|| model.to_string(), |provider| format!("{provider}/{model}")))
}

fn add_content(content: &RawValue, entry: &mut TurnEntry) -> Result<(), String> {
    if let Some(text) = string_value(content) {
        entry.texts.extend(Some(text.into_owned()).filter(|text| !text.is_empty()));
        return Ok(());
    }
    for raw in list_entries(content).ok_or("content is not text or a list of parts")? {
        let Some(part) = RawObject::from_value(raw) else { continue };
        let kind = part.get_text("type").unwrap_or_default();
        match kind.as_ref() {
            "text" => entry.texts.extend(part.get_text("text").filter(|text| !text.is_empty()).map(String::from)),
            "image" => {
                let (media_type, number) = (part.get_text("mimeType").map(String::from), entry.attachments.len() + 1);
                let data = part.get_text("data").unwrap_or_default().into_owned();
                entry.attachments.push(embedded_attachment(number, "image", media_type, data));
            }
            "toolCall" => entry.calls.push(ToolCall {
                id: part.get_text("id").unwrap_or_default().into_owned(),
                name: part.get_text("name").ok_or("a call without a name")?.into_owned(),
                params: part.get("arguments").map_or_else(|| json_string(""), minify_value),
            }),
            kind => entry.extra.push((if kind.is_empty() { "part" } else { kind }.to_owned(), minify_value(raw))),
        }
    }
    Ok(())
}

/// Takes the usage of the model call that wrote an entry.
fn set_usage(entry: &mut TurnEntry, fields: &RawObject<'_>) {
    let Some(usage) = fields.get("usage").and_then(RawObject::from_value) else { return };
    entry.usage = Some(parse_usage(&usage));
    entry.cache_write = usage.get_u64("cacheWrite").unwrap_or(0);
}

/// Parses token counts. The input is without what was cached.
fn parse_usage(usage: &RawObject<'_>) -> Usage {
    let count = |name: &str| usage.get_u64(name).unwrap_or(0);
    let input = count("input").saturating_add(count("cacheRead")).saturating_add(count("cacheWrite"));
    let cost = usage.get("cost").and_then(RawObject::from_value).and_then(|cost| cost.get_parsed("total"));
    Usage {
        input_tokens: Some(input),
        output_tokens: usage.get_u64("output"),
        cache_read_tokens: usage.get_u64("cacheRead"),
        cost_usd: cost.filter(|cost| *cost > 0.0),
        ..Usage::default()
    }
}
