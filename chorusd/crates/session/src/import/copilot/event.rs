//! Parses one event.

use std::collections::HashMap;

use chorus_proto::{Attachment, Role, ToolCall, Usage};
use serde_json::value::RawValue;

use super::PROGRAM;
use crate::import::json_values::{embedded_attachment, json_string, minify_value, parse_timestamp};
use crate::import::raw_object::{RawObject, list_entries};
use crate::import::sink::ImportedMetadata;
use crate::import::turn_entry::{CallResult, TurnEntry};

/// Fields of a reply that a message has no place for.
const KEPT_FIELDS: [&str; 3] = ["reasoningBlocks", "reasoningText", "reasoningOpaque"];

/// The meaning of an event for an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventUse {
    Message,
    Start,
    Model,
    Info,
    Asset,
    Usage,
    Shutdown,
    None,
    Unknown,
}

impl EventUse {
    pub(super) fn of(kind: &str) -> Self {
        let group = kind.split('.').next().unwrap_or(kind);
        match kind {
            "user.message" | "assistant.message" | "tool.execution_complete" | "session.compaction_complete" => {
                Self::Message
            }
            "session.start" | "session.resume" => Self::Start,
            "session.model_change" => Self::Model,
            "session.info" => Self::Info,
            "session.binary_asset" => Self::Asset,
            "session.usage_record" => Self::Usage,
            "session.shutdown" => Self::Shutdown,
            // `system.message` is the prompt; `model.*` repeats the conversation.
            _ if ["session", "assistant", "tool", "subagent", "system", "model", "hook", "user"].contains(&group) => {
                Self::None
            }
            _ => Self::Unknown,
        }
    }
}

/// Parses the events of conversations in order.
#[derive(Debug, Default)]
pub(super) struct EventReader {
    /// Usage of model calls by their ids, with the tokens that were written to the cache. It is recorded before the reply.
    usage: HashMap<String, (Usage, u64)>,
    /// Names of tools by the ids of calls without a result.
    calls: HashMap<String, String>,
}

impl EventReader {
    /// Adds the usage of a call, with the tokens that were written to the cache.
    pub(super) fn add_usage(&mut self, call: String, usage: &RawObject<'_>) {
        let cache_write = usage.get_u64("cacheWriteTokens").unwrap_or(0);
        self.usage.insert(call, (parse_usage(usage), cache_write));
    }

    /// Parses an event of the kind [`EventUse::Message`]. `read_asset` returns the content of a file in base64.
    pub(super) fn parse(
        &mut self,
        fields: &RawObject<'_>,
        about: &mut ImportedMetadata,
        read_asset: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<TurnEntry, String> {
        let data = fields.get("data").and_then(RawObject::from_value).ok_or("no data")?;
        let kind = fields.get_text("type").unwrap_or_default();
        let mut entry = match kind.as_ref() {
            "user.message" => parse_question(&data, read_asset),
            "assistant.message" => self.parse_reply(&data, about),
            "session.compaction_complete" => {
                let mut entry = TurnEntry::new(PROGRAM, Role::System);
                entry.texts.extend(data.get_text("summaryContent").map(String::from));
                entry
            }
            _ => self.parse_result(&data, read_asset),
        };
        entry.id = fields.get_text("id").map(String::from);
        entry.at = fields.get("timestamp").and_then(parse_timestamp);
        about.started_at = about.started_at.or(entry.at);
        Ok(entry)
    }

    fn parse_reply(&mut self, data: &RawObject<'_>, about: &mut ImportedMetadata) -> TurnEntry {
        let mut entry = TurnEntry::new(PROGRAM, Role::Assistant);
        entry.texts.extend(data.get_text("content").filter(|text| !text.is_empty()).map(String::from));
        about.model = data.get_text("model").map(String::from).or(about.model.take());
        for raw in data.get("toolRequests").and_then(list_entries).unwrap_or_default() {
            let Some(call) = RawObject::from_value(raw).as_ref().and_then(parse_call) else {
                entry.extra.push(("toolRequests".into(), minify_value(raw)));
                continue;
            };
            self.calls.insert(call.id.clone(), call.name.clone());
            entry.calls.push(call);
        }
        if let Some((name, value)) = KEPT_FIELDS.iter().find_map(|name| Some((name, data.get(name)?))) {
            entry.extra.push(((*name).to_owned(), minify_value(value)));
        }
        entry.model.clone_from(&about.model);
        // Older versions have only this count.
        let output =
            data.get_u64("outputTokens").map(|output| Usage { output_tokens: Some(output), ..Usage::default() });
        let recorded = data.get_text("apiCallId").and_then(|call| self.usage.remove(call.as_ref()));
        (entry.usage, entry.cache_write) = match recorded {
            Some((usage, cache_write)) => (Some(usage), cache_write),
            None => (output, 0),
        };
        entry
    }

    fn parse_result(&mut self, data: &RawObject<'_>, read_asset: &mut dyn FnMut(&str) -> Option<String>) -> TurnEntry {
        let mut entry = TurnEntry::new(PROGRAM, Role::User);
        let call = data.get_text("toolCallId").unwrap_or_default().into_owned();
        let result = data.get("result").and_then(RawObject::from_value);
        let error = data.get("error").and_then(RawObject::from_value);
        let text = result.as_ref().and_then(|result| result.get_text("content"));
        let text = text.or_else(|| error.as_ref().and_then(|error| error.get_text("message")));
        let exit: Option<i64> =
            data.get("shellExecution").and_then(RawObject::from_value).and_then(|shell| shell.get_parsed("exitCode"));
        let files = result.as_ref().and_then(|result| result.get("binaryResultsForLlm")).and_then(list_entries);
        let name = self.calls.remove(&call).or_else(|| data.get_text("toolName").map(String::from));
        entry.results.push(CallResult {
            call,
            name,
            text: text.unwrap_or_default().into_owned(),
            attachments: parse_files(files, read_asset),
            is_error: data.get("success").is_some_and(|success| success.get() == "false")
                || exit.is_some_and(|status| status != 0),
            at: None,
        });
        entry
    }
}

fn parse_question(data: &RawObject<'_>, read_asset: &mut dyn FnMut(&str) -> Option<String>) -> TurnEntry {
    let mut entry = TurnEntry::new(PROGRAM, Role::User);
    entry.texts.extend(data.get_text("content").filter(|text| !text.is_empty()).map(String::from));
    // The question to a subagent.
    entry.by_program = data.get_text("source").is_some_and(|source| source.starts_with("agent-"));
    entry.attachments = parse_files(data.get("attachments").and_then(list_entries), read_asset);
    entry
}

fn parse_files(files: Option<Vec<&RawValue>>, read_asset: &mut dyn FnMut(&str) -> Option<String>) -> Vec<Attachment> {
    let files = files.unwrap_or_default().into_iter().filter_map(RawObject::from_value);
    let parsed = (1..).zip(files).map(|(number, file)| {
        let text = |name: &str| file.get_text(name).map(String::from);
        let kind = text("type").unwrap_or_else(|| "file".into());
        let data = text("assetId").and_then(|id| read_asset(&id)).or_else(|| text("data"));
        let mut attachment = embedded_attachment(number, &kind, text("mimeType"), data.clone().unwrap_or_default());
        if data.is_none() {
            (attachment.data, attachment.size) = (None, file.get_u64("byteLength"));
        }
        attachment.name = text("displayName").unwrap_or(attachment.name);
        attachment.path = text("path");
        attachment
    });
    parsed.collect()
}

fn parse_call(fields: &RawObject<'_>) -> Option<ToolCall> {
    let params = fields.get("arguments").map_or_else(|| json_string(""), minify_value);
    Some(ToolCall {
        id: fields.get_text("toolCallId")?.into_owned(),
        name: fields.get_text("name")?.into_owned(),
        params,
    })
}

/// Parses token counts. The input contains what was cached.
pub(super) fn parse_usage(usage: &RawObject<'_>) -> Usage {
    Usage {
        input_tokens: usage.get_u64("inputTokens"),
        output_tokens: usage.get_u64("outputTokens"),
        cache_read_tokens: usage.get_u64("cacheReadTokens"),
        duration_ms: usage.get_u64("duration"),
        ..Usage::default()
    }
}
