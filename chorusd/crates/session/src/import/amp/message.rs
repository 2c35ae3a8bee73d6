//! Parses a message. Results of tool calls are in a message of the user.

use std::collections::HashMap;

use chorus_proto::{Role, ToolCall, Usage};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::PROGRAM;
use crate::import::json_values::{embedded_attachment, json_string, minify_value, output_text, parse_timestamp};
use crate::import::raw_object::{RawObject, list_entries, string_value};
use crate::import::sink::ImportedMetadata;
use crate::import::turn_entry::{CallResult, TurnEntry};

/// Parses the messages of a thread in order.
#[derive(Debug)]
pub(super) struct MessageReader {
    /// Names of tools by the ids of calls without a result.
    calls: HashMap<String, String>,
    /// The time of the last message that has one.
    last_at: Option<Timestamp>,
}

impl MessageReader {
    /// Messages before the first that has a time get that of the thread.
    pub(super) fn new(started_at: Option<Timestamp>) -> Self {
        Self { calls: HashMap::new(), last_at: started_at }
    }

    /// Parses a message: results come before what else it says. Returns the reason if it is not one.
    pub(super) fn parse(
        &mut self,
        fields: &RawObject<'_>,
        about: &mut ImportedMetadata,
    ) -> Result<Vec<TurnEntry>, String> {
        let role = match fields.get_text("role").as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some(other) => return Err(format!("unknown role {:?}", other.chars().take(40).collect::<String>())),
            None => return Err("no role".into()),
        };
        let id = fields.get_u64("messageId").map(|id| id.to_string()).or_else(|| fields.get_filled("messageId"));
        let usage = fields.get("usage").and_then(RawObject::from_value);
        let sent_at = fields
            .get("meta")
            .and_then(RawObject::from_value)
            .and_then(|meta| meta.get("sentAt").and_then(parse_timestamp));
        let replied_at = usage.as_ref().and_then(|usage| usage.get("timestamp").and_then(parse_timestamp));
        self.last_at = sent_at.or(replied_at).or(self.last_at);
        let entry = |id: Option<String>| TurnEntry { id, at: self.last_at, ..TurnEntry::new(PROGRAM, role) };
        let (mut results, mut said) = (entry(id.as_ref().map(|id| format!("{id}/results"))), entry(id));
        if let Some(text) = fields.get("content").and_then(string_value) {
            said.texts.push(text.into_owned());
        }
        for raw in fields.get("content").and_then(list_entries).unwrap_or_default() {
            self.add_block(raw, &mut said, &mut results);
        }
        if let Some(usage) = usage.filter(|_| role == Role::Assistant) {
            said.model = usage.get_filled("model");
            about.model = said.model.clone().or(about.model.take());
            said.cache_write = usage.get_u64("cacheCreationInputTokens").unwrap_or(0);
            said.usage = Some(parse_usage(&usage));
        }
        Ok(vec![results, said])
    }

    fn add_block(&mut self, raw: &RawValue, said: &mut TurnEntry, results: &mut TurnEntry) {
        let Some(block) = RawObject::from_value(raw) else { return };
        match block.get_text("type").unwrap_or_default().as_ref() {
            "text" => {
                said.texts.extend(block.get_text("text").filter(|text| !text.is_empty()).map(String::from));
            }
            "tool_use" => {
                let id = block.get_text("id").unwrap_or_default().into_owned();
                let name = block.get_text("name").unwrap_or_else(|| "tool".into()).into_owned();
                self.calls.insert(id.clone(), name.clone());
                let params = block.get("input").map_or_else(|| json_string(""), minify_value);
                said.calls.push(ToolCall { id, name, params });
            }
            "tool_result" => results.results.extend(self.parse_result(&block)),
            "image" => {
                let source = block.get("source").and_then(RawObject::from_value);
                let data = source.as_ref().and_then(|source| source.get_text("data"));
                let Some(data) = data else {
                    said.extra.push(("blocks".into(), minify_value(raw)));
                    return;
                };
                let media_type = source
                    .and_then(|source| source.get_filled("mediaType").or_else(|| source.get_filled("media_type")));
                let number = said.attachments.len() + 1;
                said.attachments.push(embedded_attachment(number, "image", media_type, data.into_owned()));
            }
            // Thinking, and blocks that are not known.
            _ => said.extra.push(("blocks".into(), minify_value(raw))),
        }
    }

    /// Returns the result of a call, unless it still runs.
    fn parse_result(&mut self, block: &RawObject<'_>) -> Option<CallResult> {
        let call = block.get_text("toolUseID").or_else(|| block.get_text("tool_use_id"))?.into_owned();
        let run = block.get("run").and_then(RawObject::from_value)?;
        let status = run.get_text("status").unwrap_or_default();
        if status == "in-progress" {
            return None;
        }
        let result = run.get("result");
        let error = run.get("error").map(|error| {
            let message = RawObject::from_value(error).and_then(|error| error.get_filled("message"));
            message.unwrap_or_else(|| output_text(error))
        });
        let exit: Option<i64> = result.and_then(RawObject::from_value).and_then(|result| result.get_parsed("exitCode"));
        let is_error = status != "done" || exit.is_some_and(|exit| exit != 0);
        let text = error.or_else(|| result.map(output_text)).unwrap_or_else(|| status.into_owned());
        Some(CallResult { name: self.calls.remove(&call), call, text, is_error, ..CallResult::default() })
    }
}

/// Parses token counts. The input is without what was cached.
fn parse_usage(usage: &RawObject<'_>) -> Usage {
    let count = |name: &str| usage.get_u64(name);
    let parts =
        ["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"].map(|name| count(name).unwrap_or(0));
    let sum = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(*part));
    Usage {
        input_tokens: count("totalInputTokens").or(Some(sum).filter(|sum| *sum > 0)),
        output_tokens: count("outputTokens"),
        cache_read_tokens: count("cacheReadInputTokens"),
        ..Usage::default()
    }
}
