//! Parses a request: what the person asked, and the answer with its tool calls.

use std::borrow::Cow;

use chorus_proto::{Attachment, Role, ToolCall, Usage};
use chorus_tool_files::path_of_file_url;
use serde_json::value::RawValue;

use super::PROGRAM;
use crate::import::json_values::{json_string, minify_value, parse_timestamp};
use crate::import::raw_object::{RawObject, list_entries, string_value};
use crate::import::sink::ImportedMetadata;
use crate::import::turn_entry::{CallResult, TurnEntry, TurnSequence};

/// Parses a request. Returns the reason if it is not one.
pub(super) fn parse(fields: &RawObject<'_>, about: &mut ImportedMetadata) -> Result<Vec<TurnEntry>, String> {
    let message = fields.get("message").ok_or("no message")?;
    let text = RawObject::from_value(message).and_then(|message| message.get_text("text"));
    let text = text.or_else(|| string_value(message)).ok_or("a message without text")?;
    let asked_at = fields.get("timestamp").and_then(parse_timestamp);
    let mut question = TurnEntry::new(PROGRAM, Role::User);
    question.id = fields.get_filled("requestId");
    question.at = asked_at.or(about.started_at);
    question.texts.push(text.into_owned());
    question.attachments = parse_variables(fields);

    let state = fields.get("modelState").and_then(RawObject::from_value);
    let completed_at = state.and_then(|state| state.get("completedAt").and_then(parse_timestamp));
    let mut turns = TurnSequence::new(TurnEntry {
        id: fields.get_filled("responseId").or_else(|| question.id.as_ref().map(|id| format!("{id}/response"))),
        at: completed_at.or(question.at),
        ..TurnEntry::new(PROGRAM, Role::Assistant)
    });
    let result = fields.get("result").and_then(RawObject::from_value);
    let metadata = result.as_ref().and_then(|result| result.get("metadata")).and_then(RawObject::from_value);
    turns.current().usage = Some(parse_usage(fields, metadata.as_ref()));
    let model = fields.get_filled("modelId").map(|model| model.strip_prefix("copilot/").unwrap_or(&model).to_owned());
    let resolved = metadata.as_ref().and_then(|metadata| metadata.get_filled("resolvedModel"));
    about.model = resolved.or(model).or(about.model.take());
    let parts = fields.get("response").and_then(list_entries).unwrap_or_default();
    let rounds = metadata.as_ref().and_then(|metadata| metadata.get("toolCallRounds")).and_then(list_entries);
    match rounds.filter(|rounds| !rounds.is_empty()) {
        Some(rounds) => {
            let results = metadata.as_ref().and_then(|metadata| metadata.get("toolCallResults"));
            add_rounds(&rounds, results.and_then(RawObject::from_value).as_ref(), &mut turns);
            let is_answered =
                rounds.last().and_then(|raw| RawObject::from_value(raw)?.get_filled("response")).is_some();
            if !is_answered {
                // The text after the last call is only in what was shown.
                let last_call = parts.iter().rposition(|raw| is_invocation(raw));
                add_parts(&parts[last_call.map_or(0, |at| at + 1)..], &mut turns);
            }
        }
        None => add_parts(&parts, &mut turns),
    }
    if let Some(error) = result.as_ref().and_then(|result| result.get("errorDetails")) {
        turns.current().extra.push(("errorDetails".into(), minify_value(error)));
    }
    let mut entries = vec![question];
    entries.extend(turns.into_entries());
    Ok(entries)
}

/// Adds the rounds of a turn, which have the arguments of calls, with the results.
fn add_rounds(rounds: &[&RawValue], results: Option<&RawObject<'_>>, turns: &mut TurnSequence) {
    for round in rounds.iter().filter_map(|raw| RawObject::from_value(raw)) {
        turns.current().texts.extend(round.get_filled("response"));
        if let Some(thinking) = round.get("thinking") {
            turns.current().extra.push(("thinking".into(), minify_value(thinking)));
        }
        let calls = round.get("toolCalls").and_then(list_entries).unwrap_or_default();
        let calls: Vec<_> = calls.into_iter().filter_map(RawObject::from_value).collect();
        for call in &calls {
            let arguments = call.get("arguments");
            let decoded =
                arguments.and_then(string_value).and_then(|text| RawValue::from_string(text.into_owned()).ok());
            let params = decoded.as_deref().or(arguments).map_or_else(|| json_string(""), minify_value);
            let name = call.get_text("name").unwrap_or_else(|| Cow::from("tool")).into_owned();
            turns.add_call(ToolCall { id: call.get_text("id").unwrap_or_default().into_owned(), name, params });
        }
        for call in calls {
            let id = call.get_text("id").unwrap_or_default();
            let Some(result) = results.and_then(|results| results.get(&id)) else { continue };
            let name = call.get_filled("name");
            turns.add_result(CallResult {
                call: id.into_owned(),
                name,
                text: result_text(result),
                ..CallResult::default()
            });
        }
    }
}

fn result_text(result: &RawValue) -> String {
    let content = RawObject::from_value(result).and_then(|result| result.get("content").and_then(list_entries));
    let parts = content.unwrap_or_default().into_iter().filter_map(RawObject::from_value);
    let texts = parts.filter_map(|part| {
        let value = part.get("value")?;
        Some(string_value(value).map_or_else(|| minify_value(value).get().to_owned(), Cow::into_owned))
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn is_invocation(raw: &RawValue) -> bool {
    RawObject::from_value(raw)
        .and_then(|part| part.get_text("kind"))
        .is_some_and(|kind| kind == "toolInvocationSerialized")
}

/// Adds what was shown: Markdown in pieces, with references to files between them, and calls without their arguments.
fn add_parts(parts: &[&RawValue], turns: &mut TurnSequence) {
    let mut text = String::new();
    for part in parts.iter().filter_map(|raw| RawObject::from_value(raw)) {
        match part.get_text("kind").as_deref() {
            None | Some("markdownContent") => {
                let content = part.get("content").and_then(RawObject::from_value);
                let value = part.get_text("value").or_else(|| content.as_ref()?.get_text("value"));
                text.push_str(&value.unwrap_or_default());
            }
            Some("inlineReference") => {
                let reference = part.get("inlineReference").and_then(RawObject::from_value);
                let name = part.get_filled("name").or_else(|| reference.and_then(|reference| path_of_uri(&reference)));
                text.push_str(&name.unwrap_or_default());
            }
            Some("thinking") => {
                let value = part.get("value").map_or_else(|| json_string(""), minify_value);
                turns.current().extra.push(("thinking".into(), value));
            }
            Some("toolInvocationSerialized") => {
                add_text(&mut text, turns);
                add_invocation(&part, turns);
            }
            // Edits of files, references, and states of the program.
            Some(_) => {}
        }
    }
    add_text(&mut text, turns);
}

fn add_text(text: &mut String, turns: &mut TurnSequence) {
    let text = std::mem::take(text);
    turns.current().texts.extend(Some(text).filter(|text| !text.trim().is_empty()));
}

/// Adds a call of which only the description is known, or its command.
fn add_invocation(part: &RawObject<'_>, turns: &mut TurnSequence) {
    let specific = part.get("toolSpecificData").and_then(RawObject::from_value);
    let command = specific.as_ref().and_then(|data| {
        let line = data.get("commandLine")?;
        let edited = RawObject::from_value(line).and_then(|line| line.get_filled("original"));
        edited.or_else(|| string_value(line).map(Cow::into_owned))
    });
    let message = part.get("pastTenseMessage").or_else(|| part.get("invocationMessage"));
    let message = message.and_then(|message| {
        let value = RawObject::from_value(message).and_then(|message| message.get_filled("value"));
        value.or_else(|| string_value(message).map(Cow::into_owned))
    });
    let (key, value) = command.map_or(("description", message.unwrap_or_default()), |command| ("command", command));
    let value = json_string(&value);
    turns.add_call(ToolCall {
        id: part.get_text("toolCallId").unwrap_or_default().into_owned(),
        name: part.get_text("toolId").unwrap_or_else(|| Cow::from("tool")).into_owned(),
        params: RawValue::from_string(format!("{{\"{key}\":{}}}", value.get())).unwrap_or(value),
    });
}

/// Parses what the person attached: files by their paths.
fn parse_variables(fields: &RawObject<'_>) -> Vec<Attachment> {
    let data = fields.get("variableData").and_then(RawObject::from_value);
    let variables = data.and_then(|data| data.get("variables").and_then(list_entries)).unwrap_or_default();
    let attachments = variables.into_iter().filter_map(RawObject::from_value).filter_map(|variable| {
        let value = variable.get("value").and_then(RawObject::from_value);
        let inner = value.as_ref().and_then(|value| value.get("uri")).and_then(RawObject::from_value);
        let path = inner.or(value).and_then(|uri| path_of_uri(&uri));
        let name = variable.get_filled("name").or_else(|| path.clone())?;
        Some(Attachment { name, media_type: variable.get_filled("mimeType"), size: None, path, url: None, data: None })
    });
    attachments.collect()
}

/// Returns the path of a URI in its parts.
fn path_of_uri(uri: &RawObject<'_>) -> Option<String> {
    let external = || uri.get_text("external").and_then(|url| path_of_file_url(&url));
    uri.get_filled("fsPath").or_else(|| uri.get_filled("path")).or_else(external)
}

/// Parses token counts: of the whole turn, or, in some versions, of its last round.
fn parse_usage(fields: &RawObject<'_>, metadata: Option<&RawObject<'_>>) -> Usage {
    let older = |name: &str| metadata.and_then(|metadata| metadata.get_u64(name));
    Usage {
        input_tokens: fields.get_u64("promptTokens").or_else(|| older("promptTokens")),
        output_tokens: fields.get_u64("completionTokens").or_else(|| older("outputTokens")),
        ..Usage::default()
    }
}
