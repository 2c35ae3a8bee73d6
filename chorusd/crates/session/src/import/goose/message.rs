//! Converts one entry to messages: one for each tool result, and one for the rest.

use std::io;

use chorus_proto::{NewMessage, Role, Usage};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::json_values::{
    group_by_kind, import_source, minify_json, minify_value, parse_timestamp, provider_object,
};
use super::super::raw_object::{RawObject, list_entries, string_value};
use super::super::writer::SessionWriter;
use super::block::GooseBlock;

/// Fields that a message has a place for, or that say nothing about the conversation. All others are kept in
/// `provider`.
const KNOWN_FIELDS: [&str; 4] = ["role", "created", "content", "id"];

/// The metadata of every message that is visible to both the user and the model.
const DEFAULT_METADATA: &str = r#"{"userVisible":true,"agentVisible":true}"#;

/// Converts the entries of a session in order.
#[derive(Debug, Default)]
pub(super) struct MessageReader {
    /// Ids and names of tool calls that have no result yet.
    calls: Vec<(String, String)>,
}

/// A parsed entry.
struct ParsedEntry {
    id: Option<String>,
    at: Option<Timestamp>,
    results: Vec<NewMessage>,
    said: NewMessage,
    /// Blocks that a message has no field for.
    extra_blocks: Vec<(String, Box<RawValue>)>,
    /// Fields that a message has no place for.
    extra_fields: Vec<(String, Box<RawValue>)>,
}

impl MessageReader {
    /// Writes the messages of the entry with this number.
    pub(super) fn add_entry(
        &mut self,
        number: u64,
        fields: &RawObject<'_>,
        writer: &mut SessionWriter<'_>,
    ) -> io::Result<()> {
        let ParsedEntry { mut id, at, results, mut said, extra_blocks: mut others, extra_fields: kept } =
            match self.parse_entry(fields) {
                Ok(entry) => entry,
                Err(reason) => {
                    writer.skip(number, reason);
                    return Ok(());
                }
            };
        let at = at.unwrap_or(writer.now);
        let speaks = !said.content.is_empty() || !said.tool_calls.is_empty() || !said.attachments.is_empty();
        let speaks = speaks || !others.is_empty() || results.is_empty();
        others.extend(kept);
        for mut result in results {
            if !speaks {
                // The entry contains only tool results, so the first one takes its id.
                result.id = id.take();
                result.provider = provider_object("goose", &group_by_kind(std::mem::take(&mut others)));
            }
            let result = result.complete(&mut *writer.new_id, at);
            writer.write_message(&result)?;
        }
        if speaks {
            said.id = id;
            said.provider = provider_object("goose", &group_by_kind(others));
            let said = said.complete(&mut *writer.new_id, at);
            writer.write_message(&said)?;
        }
        Ok(())
    }

    fn parse_entry(&mut self, fields: &RawObject<'_>) -> Result<ParsedEntry, String> {
        let role = match fields.get_text("role").ok_or("no role")?.to_ascii_lowercase().as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            other => return Err(format!("unknown role {:?}", other.chars().take(40).collect::<String>())),
        };
        let content = fields.get("content").ok_or("no content")?;
        let mut entry = ParsedEntry {
            id: fields.get_text("id").filter(|id| !id.is_empty()).map(Into::into),
            at: fields.get("created").and_then(parse_timestamp),
            results: Vec::new(),
            said: NewMessage { usage: parse_usage(fields), ..new_message(role) },
            extra_blocks: Vec::new(),
            extra_fields: unknown_fields(fields),
        };
        let mut texts: Vec<String> = Vec::new();
        if let Some(text) = string_value(content) {
            texts.push(text.into_owned());
        } else {
            for raw in list_entries(content).ok_or("content is not text or a list of blocks")? {
                self.add_block(raw, &mut entry, &mut texts);
            }
        }
        entry.said.content = texts.join("\n");
        Ok(entry)
    }

    fn add_block(&mut self, raw: &RawValue, entry: &mut ParsedEntry, texts: &mut Vec<String>) {
        match GooseBlock::parse(raw, entry.said.attachments.len() + 1) {
            GooseBlock::Text(text) => texts.push(text),
            GooseBlock::Picture(picture) => entry.said.attachments.push(picture),
            GooseBlock::Call(call) => {
                self.calls.push((call.id.clone(), call.name.clone()));
                entry.said.tool_calls.push(call);
            }
            GooseBlock::Answer { call, text, attachments, failed } => {
                let at = self.calls.iter().rposition(|(id, _)| *id == call);
                let name = at.map(|at| self.calls.remove(at).1);
                entry.results.push(NewMessage {
                    content: text,
                    attachments,
                    name,
                    tool_call_id: Some(call),
                    is_error: failed,
                    ..new_message(Role::ToolResult)
                });
            }
            GooseBlock::Other(kind) => entry.extra_blocks.push((kind, minify_value(raw))),
        }
    }
}

/// Parses the token counts of a reply. The input contains what was cached.
fn parse_usage(fields: &RawObject<'_>) -> Option<Usage> {
    let metadata = RawObject::from_value(fields.get("metadata")?)?;
    let usage = RawObject::from_value(metadata.get("usage")?)?;
    Some(Usage {
        input_tokens: usage.get_u64("inputTokens"),
        output_tokens: usage.get_u64("outputTokens"),
        cache_read_tokens: usage.get_u64("cacheReadTokens"),
        duration_ms: usage.get_u64("elapsedMs"),
        ..Usage::default()
    })
}

fn new_message(role: Role) -> NewMessage {
    NewMessage { source: Some(import_source("goose")), ..NewMessage::text(role, "") }
}

/// Returns the fields that a message has no place for.
fn unknown_fields(fields: &RawObject<'_>) -> Vec<(String, Box<RawValue>)> {
    let without = fields.iter().filter(|(key, value)| !KNOWN_FIELDS.contains(key) && value.get() != "null");
    let unusual = without
        .filter(|(key, value)| *key != "metadata" || !matches!(&*minify_json(value.get()), "{}" | DEFAULT_METADATA));
    unusual.map(|(key, value)| (key.to_owned(), minify_value(value))).collect()
}
