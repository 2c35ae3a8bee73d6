//! Parses a message of a transcript: blocks of Anthropic's API, or, in newer versions of Roo Code, parts of the AI SDK.

use std::collections::HashMap;

use chorus_proto::{Role, ToolCall, Usage};
use serde_json::value::RawValue;

use super::requests::Requests;
use crate::import::anthropic_blocks::content::{ContentBlock, ToolOutput, parse_content};
use crate::import::json_values::{embedded_attachment, json_string, linked_attachment, minify_value, parse_timestamp};
use crate::import::raw_object::{RawObject, list_entries, string_value};
use crate::import::turn_entry::{CallResult, TurnEntry};

/// Tags that the programs put around the words of a person.
const WRAPPERS: [&str; 5] = ["task", "feedback", "user_message", "answer", "user_input"];

/// Tags around what the programs tell the model about its surroundings.
const SURROUNDINGS: (&str, &str) = ("<environment_details>", "</environment_details>");

/// Parses the messages of a transcript in order.
#[derive(Debug, Default)]
pub(super) struct MessageReader {
    /// Names of tools by the ids of calls without a result.
    calls: HashMap<String, String>,
    /// The directory that the surroundings name.
    pub directory: Option<String>,
}

impl MessageReader {
    /// Parses the message with this number, from 0: results of calls come before what else it says. Returns the reason if it is
    /// not one.
    pub(super) fn parse(
        &mut self,
        program: &'static str,
        number: i64,
        requests: &Requests,
        fields: &RawObject<'_>,
    ) -> Result<Vec<TurnEntry>, String> {
        let role = match fields.get_text("role").as_deref() {
            // The summary of a compaction; what it stands for stays in the transcript.
            Some(_) if fields.is_true("isSummary") => Role::System,
            Some("user" | "tool") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            Some(other) => return Err(format!("unknown role {:?}", other.chars().take(40).collect::<String>())),
            None if fields.get_text("type").is_some_and(|kind| kind == "reasoning") => return Ok(Vec::new()),
            None => return Err("no role".into()),
        };
        if fields.is_true("isTruncationMarker") {
            return Ok(Vec::new());
        }
        let written_at = fields.get("ts").and_then(parse_timestamp);
        let id = fields.get_filled("id").unwrap_or_else(|| (number + 1).to_string());
        let at = written_at.or_else(|| requests.time_of(number, role == Role::Assistant));
        let entry = |id: String| TurnEntry { id: Some(id), at, ..TurnEntry::new(program, role) };
        let (mut results, mut said) = (entry(format!("{id}/results")), entry(id));
        let content = fields.get("content").ok_or("no content")?;
        // An empty reply, which was interrupted.
        let blocks = if content.get() == "[]" { Vec::new() } else { parse_content(content)?.0 };
        for block in blocks {
            self.add_block(block, &mut said, &mut results);
        }
        if role == Role::Assistant {
            let metrics = fields.get("metrics").and_then(RawObject::from_value);
            let recorded = metrics.as_ref().map(parse_metrics).or_else(|| requests.usage_of(number, written_at));
            (said.usage, said.cache_write) = recorded.map_or((None, 0), |(usage, written)| (Some(usage), written));
            let model = fields.get("modelInfo").and_then(RawObject::from_value);
            said.model = model.and_then(|model| model.get_filled("id"));
        }
        Ok(vec![results, said])
    }

    fn add_block(&mut self, block: ContentBlock<'_>, said: &mut TurnEntry, results: &mut TurnEntry) {
        match block {
            ContentBlock::Text(text) if said.role == Role::User => self.add_user_text(&text, said),
            ContentBlock::Text(text) => {
                said.texts.extend(Some(text.into_owned()).filter(|text| !text.trim().is_empty()));
            }
            ContentBlock::Call { id, name, input } => {
                let params = input.map_or_else(|| json_string(""), minify_value);
                self.add_call(ToolCall { id: id.into(), name: name.into(), params }, said);
            }
            ContentBlock::Result(output) => results.results.push(self.result_of(output)),
            ContentBlock::File(file) => said.attachments.push(file.into_attachment(said.attachments.len() + 1)),
            ContentBlock::Other(raw) => match RawObject::from_value(raw) {
                Some(part) if self.add_part(&part, said, results) => {}
                _ => said.extra.push(("blocks".into(), minify_value(raw))),
            },
        }
    }

    /// Adds words of the user, without what the program put around them.
    fn add_user_text(&mut self, text: &str, said: &mut TurnEntry) {
        let (mut own, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once(SURROUNDINGS.0) {
            let Some((inside, after)) = after.split_once(SURROUNDINGS.1) else { break };
            self.directory = self.directory.take().or_else(|| directory_of(inside));
            own.push_str(before);
            rest = after;
        }
        own.push_str(rest);
        let text = own.as_str();
        let text = text.trim();
        // Before tools had calls of their own, their results came as texts.
        said.by_program |= said.texts.is_empty() && text.starts_with('[') && text.contains("] Result:");
        let unwrapped = WRAPPERS.iter().find_map(|tag| inside_tag(text, tag));
        said.texts.extend(Some(unwrapped.unwrap_or(text).to_owned()).filter(|text| !text.is_empty()));
    }

    fn add_call(&mut self, call: ToolCall, said: &mut TurnEntry) {
        self.calls.insert(call.id.clone(), call.name.clone());
        said.calls.push(call);
    }

    fn result_of(&mut self, output: ToolOutput<'_>) -> CallResult {
        CallResult {
            name: self.calls.remove(output.call.as_ref()),
            call: output.call.into_owned(),
            text: output.text,
            attachments: (1..).zip(output.files).map(|(number, file)| file.into_attachment(number)).collect(),
            is_error: output.is_error,
            at: None,
        }
    }

    /// Adds a part of the AI SDK. Returns whether it is one that a message has a place for.
    fn add_part(&mut self, part: &RawObject<'_>, said: &mut TurnEntry, results: &mut TurnEntry) -> bool {
        match part.get_text("type").unwrap_or_default().as_ref() {
            "tool-call" => {
                let params =
                    part.get("input").or_else(|| part.get("args")).map_or_else(|| json_string(""), minify_value);
                let id = part.get_text("toolCallId").unwrap_or_default().into_owned();
                let name = part.get_text("toolName").unwrap_or_else(|| "tool".into()).into_owned();
                self.add_call(ToolCall { id, name, params }, said);
            }
            "tool-result" => {
                let call = part.get_text("toolCallId").unwrap_or_default().into_owned();
                let name = self.calls.remove(&call).or_else(|| part.get_filled("toolName"));
                let output = part.get("output").or_else(|| part.get("result"));
                let (text, is_error) = output.map_or_else(Default::default, parse_output);
                results.results.push(CallResult { call, name, text, is_error, ..CallResult::default() });
            }
            "image" | "file" => {
                let data = part.get_text("image").or_else(|| part.get_text("data"));
                let Some(data) = data else { return false };
                let media_type = part.get_filled("mediaType").or_else(|| part.get_filled("mimeType"));
                let number = said.attachments.len() + 1;
                said.attachments.push(match data.starts_with("data:") || data.starts_with("http") {
                    true => linked_attachment(number, "file", &data),
                    false => embedded_attachment(number, "file", media_type, data.into_owned()),
                });
            }
            _ => return false,
        }
        true
    }
}

/// Parses the output of a tool: `{"type":"text","value":…}`, or any value. Returns its text, and whether it is an error.
fn parse_output(raw: &RawValue) -> (String, bool) {
    let fields = RawObject::from_value(raw);
    let kind = fields.as_ref().and_then(|fields| fields.get_text("type")).unwrap_or_default();
    let value = fields.as_ref().and_then(|fields| fields.get("value")).unwrap_or(raw);
    let parts = list_entries(value).unwrap_or_default().into_iter();
    let texts: Vec<_> = parts.filter_map(RawObject::from_value).filter_map(|part| part.get_text("text")).collect();
    let text = match string_value(value) {
        Some(text) => text.into_owned(),
        None if texts.is_empty() => minify_value(value).get().to_owned(),
        None => texts.join("\n"),
    };
    (text, kind.starts_with("error"))
}

/// Returns what is inside a tag, if `text` is nothing else.
fn inside_tag<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let rest = text.strip_prefix('<')?.strip_prefix(tag)?;
    let (attributes, rest) = rest.split_once('>')?;
    let is_tag = attributes.is_empty() || attributes.starts_with(' ');
    let inside = rest.strip_suffix('>')?.strip_suffix(tag)?.strip_suffix("</")?;
    is_tag.then(|| inside.trim())
}

/// Finds the directory in `# Current Workspace Directory (/srv/shop) Files`.
fn directory_of(surroundings: &str) -> Option<String> {
    let (_, rest) = surroundings.split_once("# Current Work")?;
    let (_, rest) = rest.lines().next()?.split_once(" Directory (")?;
    rest.rsplit_once(')').map(|(directory, _)| directory.to_owned())
}

/// Parses token counts of the command line, and the tokens that were written to the cache. The input contains what was cached.
fn parse_metrics(metrics: &RawObject<'_>) -> (Usage, u64) {
    let usage = Usage {
        input_tokens: metrics.get_u64("inputTokens"),
        output_tokens: metrics.get_u64("outputTokens"),
        cache_read_tokens: metrics.get_u64("cacheReadTokens"),
        cost_usd: metrics.get_parsed("cost").filter(|cost| *cost > 0.0),
        ..Usage::default()
    };
    (usage, metrics.get_u64("cacheWriteTokens").unwrap_or(0))
}
