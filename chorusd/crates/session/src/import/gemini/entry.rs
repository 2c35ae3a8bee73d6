//! Converts messages of a chat.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;

use chorus_proto::{Attachment, Role, ToolCall, Usage};
use serde_json::value::RawValue;

use super::{ChatMetadata, PROGRAM};
use crate::import::json_values::{embedded_attachment, json_string, minify_value, parse_timestamp, text_attachment};
use crate::import::raw_object::{RawObject, list_entries, string_value};
use crate::import::turn_entry::{CallResult, TurnEntry};
use crate::import::writer::SessionWriter;

/// The reply that the program itself puts behind the summary of a compaction.
pub(super) const SUMMARY_ANSWER: &str = "Got it. Thanks for the additional context!";

const SUMMARY_START: &str = "<state_snapshot>";
const CONTEXT_START: &str = "<session_context>";
const FILES_START: &str = "--- Content from referenced files ---";

/// A subagent gets its first words as description, up to this many characters.
const MAX_TITLE_CHARS: usize = 80;

/// Converts messages in order.
#[derive(Debug, Default)]
pub(super) struct EntryReader {
    /// Calls that have a result. It is repeated in a message of the user.
    answered: HashSet<String>,
    /// Ids and names of calls without a result.
    waiting: Vec<(String, String)>,
    /// The message before is the summary of a compaction.
    after_summary: bool,
}

impl EntryReader {
    /// Writes a message. Returns the reason if it cannot be understood.
    pub(super) fn write(
        &mut self,
        fields: &RawObject<'_>,
        about: &mut ChatMetadata,
        writer: &mut SessionWriter<'_>,
    ) -> io::Result<Result<(), String>> {
        let kind = fields.get_text("type").unwrap_or_default();
        let role = match kind.as_ref() {
            "user" => Role::User,
            "gemini" => Role::Assistant,
            // Notices of the program, which are not part of the conversation.
            "info" | "error" | "warning" => return Ok(Ok(())),
            _ => return Ok(Err(format!("unknown type {:?}", kind.chars().take(40).collect::<String>()))),
        };
        if is_context(fields) {
            about.read_context(&text_of(fields));
            return Ok(Ok(()));
        }
        let answers_summary = std::mem::replace(&mut self.after_summary, is_summary(fields));
        if answers_summary && text_of(fields).trim() == SUMMARY_ANSWER {
            return Ok(Ok(()));
        }
        let is_summary = is_summary(fields);
        let mut entry = TurnEntry::new(PROGRAM, if is_summary { Role::System } else { role });
        entry.id = fields.get_text("id").filter(|id| !id.is_empty()).map(Cow::into_owned);
        entry.at = fields.get("timestamp").and_then(parse_timestamp);
        match fields.get("content") {
            Some(content) => {
                if let Err(reason) = self.add_content(content, fields.get("displayContent"), &mut entry) {
                    return Ok(Err(reason));
                }
            }
            None if fields.has("toolCalls") => {}
            None => return Ok(Err("no content".into())),
        }
        if is_summary {
            entry.texts = entry.texts.iter().map(|text| summary_text(text).to_owned()).collect();
        }
        self.add_calls(fields, &mut entry);
        if let Some(thoughts) = fields.get("thoughts").filter(|thoughts| thoughts.get() != "[]") {
            entry.extra.push(("thoughts".into(), minify_value(thoughts)));
        }
        entry.usage = fields.get("tokens").and_then(RawObject::from_value).map(|tokens| parse_usage(&tokens));
        if let Some(model) = fields.get_text("model") {
            about.about.model = Some(model.into_owned());
        }
        entry.model.clone_from(&about.about.model);
        if role == Role::User && !is_summary && about.first_words.is_none() {
            let line = entry.texts.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
            about.first_words =
                Some(line.chars().take(MAX_TITLE_CHARS).collect()).filter(|line: &String| !line.is_empty());
        }
        about.about.started_at = about.about.started_at.or(entry.at);
        entry.write(writer)?;
        Ok(Ok(()))
    }

    /// Adds the parts of a content. With `typed`, the text is what the person typed, and the rest an attachment.
    fn add_content(
        &mut self,
        content: &RawValue,
        typed: Option<&RawValue>,
        entry: &mut TurnEntry,
    ) -> Result<(), String> {
        if let Some(text) = string_value(content) {
            entry.texts.extend(Some(text.into_owned()).filter(|text| !text.is_empty()));
            return Ok(());
        }
        let mut texts = Vec::new();
        for raw in parts_of(content).ok_or("content is not text or a list of parts")? {
            if let Some(text) = string_value(raw) {
                texts.push(text.into_owned());
                continue;
            }
            let Some(part) = RawObject::from_value(raw) else { continue };
            if let Some(text) = part.get_text("text").filter(|_| !part.is_true("thought")) {
                texts.push(text.into_owned());
            } else if let Some(data) = part.get("inlineData").and_then(RawObject::from_value) {
                entry.attachments.extend(parse_inline_data(&data, entry.attachments.len() + 1));
            } else if let Some(response) = part.get("functionResponse").and_then(RawObject::from_value) {
                self.add_result(&response, entry);
            } else if !part.has("functionCall") {
                entry.extra.push(("parts".into(), minify_value(raw)));
            }
        }
        let files = texts.iter().position(|text| text.trim() == FILES_START);
        if let (Some(typed), Some(at)) = (typed.and_then(typed_text), files) {
            let files: String = texts.drain(at..).collect::<Vec<_>>().join("\n");
            if files.lines().filter(|line| !line.trim().is_empty()).count() > 2 {
                entry.attachments.push(text_attachment("referenced-files.txt", &files));
            }
            texts = vec![typed];
        }
        let text = texts.concat();
        entry.texts.extend(Some(text).filter(|text| !text.is_empty()));
        Ok(())
    }

    /// Adds the result of a call, unless the reply holds it already.
    fn add_result(&mut self, response: &RawObject<'_>, entry: &mut TurnEntry) {
        let call = response.get_text("id").unwrap_or_default().into_owned();
        if self.answered.contains(&call) {
            return;
        }
        let at = self.waiting.iter().position(|(id, _)| *id == call);
        let name = response.get_text("name").map(Cow::into_owned).or_else(|| Some(self.waiting.get(at?)?.1.clone()));
        let (text, failed) = response_text(response);
        self.answered.insert(call.clone());
        entry.results.push(CallResult { call, name, text, is_error: failed, ..CallResult::default() });
    }

    /// Adds the calls of a reply with their results.
    fn add_calls(&mut self, fields: &RawObject<'_>, entry: &mut TurnEntry) {
        let Some(list) = fields.get("toolCalls").and_then(list_entries) else {
            for part in fields.get("content").and_then(parts_of).unwrap_or_default() {
                let call =
                    RawObject::from_value(part).and_then(|part| RawObject::from_value(part.get("functionCall")?));
                if let Some(call) = call.as_ref().and_then(parse_call) {
                    self.waiting.push((call.id.clone(), call.name.clone()));
                    entry.calls.push(call);
                }
            }
            return;
        };
        for raw in list {
            let Some(fields) = RawObject::from_value(raw) else { continue };
            let Some(call) = parse_call(&fields) else {
                entry.extra.push(("toolCalls".into(), minify_value(raw)));
                continue;
            };
            let status = fields.get_text("status").unwrap_or_default();
            let mut result = CallResult {
                call: call.id.clone(),
                name: Some(call.name.clone()),
                is_error: matches!(status.as_ref(), "error" | "cancelled"),
                at: fields.get("timestamp").and_then(parse_timestamp),
                ..CallResult::default()
            };
            let mut has_result = false;
            let mut texts = Vec::new();
            for part in fields.get("result").and_then(parts_of).unwrap_or_default() {
                let Some(part) = RawObject::from_value(part) else { continue };
                if let Some(response) = part.get("functionResponse").and_then(RawObject::from_value) {
                    let (text, failed) = response_text(&response);
                    has_result = true;
                    result.is_error |= failed;
                    texts.push(text);
                } else if let Some(data) = part.get("inlineData").and_then(RawObject::from_value) {
                    result.attachments.extend(parse_inline_data(&data, result.attachments.len() + 1));
                } else if let Some(text) = part.get_text("text") {
                    texts.push(text.into_owned());
                }
            }
            if has_result || !texts.is_empty() {
                result.text = texts.join("\n");
                self.answered.insert(call.id.clone());
                entry.results.push(result);
            } else {
                self.waiting.push((call.id.clone(), call.name.clone()));
            }
            entry.calls.push(call);
        }
    }
}

/// Returns the parts of a content: a list, or a single object.
fn parts_of(content: &RawValue) -> Option<Vec<&RawValue>> {
    list_entries(content).or_else(|| content.get().starts_with('{').then(|| vec![content]))
}

/// Returns the text of a message.
pub(super) fn text_of(fields: &RawObject<'_>) -> String {
    let Some(content) = fields.get("content") else { return String::new() };
    if let Some(text) = string_value(content) {
        return text.into_owned();
    }
    let parts = parts_of(content).unwrap_or_default();
    let texts = parts.into_iter().filter_map(|part| RawObject::from_value(part)?.get_text("text").map(Cow::into_owned));
    texts.collect()
}

/// Returns name and arguments of each call of a message.
pub(super) fn calls_of(fields: &RawObject<'_>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |call: &RawObject<'_>| {
        let args = call.get("args").map(|args| minify_value(args).get().to_owned());
        all.push((call.get_text("name").unwrap_or_default().into_owned(), args.unwrap_or_default()));
    };
    for raw in fields.get("toolCalls").and_then(list_entries).unwrap_or_default() {
        RawObject::from_value(raw).iter().for_each(&mut add);
    }
    if all.is_empty() {
        let mut add = |call: &RawObject<'_>| {
            let args = call.get("args").map(|args| minify_value(args).get().to_owned());
            all.push((call.get_text("name").unwrap_or_default().into_owned(), args.unwrap_or_default()));
        };
        for raw in fields.get("content").and_then(parts_of).unwrap_or_default() {
            let call = RawObject::from_value(raw).and_then(|part| RawObject::from_value(part.get("functionCall")?));
            call.iter().for_each(&mut add);
        }
    }
    all
}

/// Returns whether a message is the summary of a compaction.
pub(super) fn is_summary(fields: &RawObject<'_>) -> bool {
    starts_with(fields, SUMMARY_START)
}

/// Returns whether a message is the context that the program puts before the conversation.
pub(super) fn is_context(fields: &RawObject<'_>) -> bool {
    starts_with(fields, CONTEXT_START)
}

/// Returns the summary without its marks.
fn summary_text(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix(SUMMARY_START).unwrap_or(text);
    inside.strip_suffix("</state_snapshot>").unwrap_or(inside).trim()
}

fn starts_with(fields: &RawObject<'_>, start: &str) -> bool {
    fields.get("content").is_some_and(|content| content.get().contains(start))
        && fields.get_text("type").is_some_and(|kind| kind == "user")
        && text_of(fields).trim_start().starts_with(start)
}

/// Returns whether a message holds nothing but results of calls.
pub(super) fn has_only_results(fields: &RawObject<'_>) -> bool {
    let parts = fields.get("content").and_then(list_entries).unwrap_or_default();
    let is_result = |raw: &&RawValue| RawObject::from_value(raw).is_some_and(|part| part.has("functionResponse"));
    !parts.is_empty() && parts.iter().all(is_result)
}

fn typed_text(raw: &RawValue) -> Option<String> {
    if let Some(text) = string_value(raw) {
        return Some(text.into_owned());
    }
    let texts = parts_of(raw)?
        .into_iter()
        .filter_map(|part| RawObject::from_value(part)?.get_text("text").map(Cow::into_owned));
    Some(texts.collect::<String>()).filter(|text| !text.is_empty())
}

fn parse_call(fields: &RawObject<'_>) -> Option<ToolCall> {
    let id = fields.get_text("id").unwrap_or_default().into_owned();
    let params = fields.get("args").map_or_else(|| json_string(""), minify_value);
    Some(ToolCall { id, name: fields.get_text("name")?.into_owned(), params })
}

fn parse_inline_data(data: &RawObject<'_>, number: usize) -> Option<Attachment> {
    let media_type = data.get_text("mimeType").map(Cow::into_owned);
    Some(embedded_attachment(number, "image", media_type, data.get_text("data")?.into_owned()))
}

/// Returns the text of a function's response, and whether it is an error. Other forms are kept as JSON.
fn response_text(response: &RawObject<'_>) -> (String, bool) {
    let Some(raw) = response.get("response") else { return (String::new(), false) };
    let Some(fields) = RawObject::from_value(raw) else {
        return (string_value(raw).map_or_else(|| raw.get().to_owned(), Cow::into_owned), false);
    };
    let is_single = fields.iter().count() == 1;
    for (key, failed) in [("output", false), ("error", true)] {
        if let Some(text) = fields.get_text(key).filter(|_| is_single) {
            return (text.into_owned(), failed);
        }
    }
    (minify_value(raw).get().to_owned(), fields.has("error"))
}

/// Parses token counts. The input contains what was cached; thoughts are not part of the output.
fn parse_usage(tokens: &RawObject<'_>) -> Usage {
    let thoughts = tokens.get_u64("thoughts").unwrap_or(0);
    Usage {
        input_tokens: tokens.get_u64("input"),
        output_tokens: tokens.get_u64("output").map(|output| output.saturating_add(thoughts)),
        cache_read_tokens: tokens.get_u64("cached"),
        ..Usage::default()
    }
}
