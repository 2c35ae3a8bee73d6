//! One chat message.

use chorus_proto::{Author, Message, NewMessage, Role, ToolCall};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::anthropic::content::is_ours;
use super::super::fields::{Fields, list, text};
use super::super::values::{one_line, provider, raw_list, source, string, timestamp};
use super::{blocks, content};

/// Fields that a time stands in.
pub(super) const TIMES: [&str; 5] = ["timestamp", "created_at", "created", "create_time", "ts"];

/// Fields that have a place in a message; any other is kept in `provider`.
const PLACED: [&str; 11] = [
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "function_call",
    "id",
    "refusal",
    "type",
    "is_error",
];

/// Reads an entry of either shape; the reason, where there is no message in it.
pub(super) fn messages(
    fields: &Fields<'_>,
    now: Timestamp,
    new_id: &mut dyn FnMut() -> String,
) -> Result<Vec<Message>, String> {
    if let Some(raw) = fields.get("content").filter(|raw| is_ours(raw)) {
        return blocks::messages(fields, role(fields)?, raw, time(fields).unwrap_or(now), new_id);
    }
    Ok(vec![message(fields, now, new_id)?])
}

fn time(fields: &Fields<'_>) -> Option<Timestamp> {
    TIMES.iter().find_map(|name| fields.get(name).and_then(timestamp))
}

/// Reads a message of any role; the reason, where it is none.
pub(in super::super) fn message(
    fields: &Fields<'_>,
    now: Timestamp,
    new_id: &mut dyn FnMut() -> String,
) -> Result<Message, String> {
    let role = role(fields)?;
    let content = content::read(fields.get("content"))?;
    let mut message = NewMessage::text(role, content.text);
    message.id = fields.text("id").filter(|id| !id.is_empty()).map(Into::into);
    message.timestamp = time(fields);
    message.attachments = content.attachments;
    message.is_error = fields.flag("is_error");
    message.source = Some(source("openai"));

    let mut kept: Vec<(String, Box<RawValue>)> = fields
        .iter()
        .filter(|(key, value)| !PLACED.contains(key) && !TIMES.contains(key) && value.get() != "null")
        .map(|(key, value)| (key.to_owned(), one_line(value)))
        .collect();
    if !content.others.is_empty() {
        kept.push(("parts".into(), raw_list(&content.others)));
    }
    if let Some(refusal) = fields.get("refusal") {
        // A refusal stands where the answer would; it stays known as one.
        if message.content.is_empty() {
            message.content = text(refusal).unwrap_or_default().into_owned();
        }
        kept.push(("refusal".into(), one_line(refusal)));
    }
    message.provider = provider("openai", &kept);

    let name = fields.text("name").filter(|name| !name.is_empty());
    match role {
        Role::ToolResult => {
            // The old functions had no ids: the name is what ties a result to its call.
            message.tool_call_id = fields.text("tool_call_id").or_else(|| name.clone()).map(Into::into);
            let named = |field: &str| fields.text(field).filter(|name| !name.is_empty());
            message.name = name.or_else(|| named("tool_name")).map(Into::into);
        }
        _ => message.author = name.map(|name| Author { id: name.to_string(), name: name.into() }),
    }
    if role == Role::Assistant {
        message.tool_calls = calls(fields)?;
    }
    if message.content.is_empty() && message.attachments.is_empty() && message.tool_calls.is_empty() {
        nothing(fields, message.tool_call_id.is_some())?;
    }
    Ok(message.complete(new_id, now))
}

/// Whether an entry in which nothing was found says that there is nothing, or was not understood.
fn nothing(fields: &Fields<'_>, answers: bool) -> Result<(), String> {
    if answers {
        // A call must not lose its result.
        return Ok(());
    }
    match fields.get("content").map(list) {
        // An empty text.
        Some(None) => Ok(()),
        Some(Some(parts)) if parts.is_empty() => Err("its content is empty".into()),
        Some(Some(parts)) if parts.iter().any(|part| text(part).is_some() || content::is_text(part)) => Ok(()),
        Some(Some(_)) => Err("no part of its content is one that can be read".into()),
        None if fields.names("content") || fields.has("refusal") => Ok(()),
        None => Err("no content".into()),
    }
}

fn role(fields: &Fields<'_>) -> Result<Role, String> {
    let role = fields.text("role").ok_or("no role")?;
    match role.as_ref() {
        "system" | "developer" => Ok(Role::System),
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "tool" | "function" | "tool_result" => Ok(Role::ToolResult),
        other => Err(format!("unknown role {:?}", other.chars().take(40).collect::<String>())),
    }
}

fn calls(fields: &Fields<'_>) -> Result<Vec<ToolCall>, String> {
    let mut calls = Vec::new();
    if let Some(raw) = fields.get("tool_calls") {
        // Databases keep the list as a text.
        let inside = text(raw).and_then(|inside| RawValue::from_string(inside.into_owned()).ok());
        for raw in list(inside.as_deref().unwrap_or(raw)).ok_or("tool_calls is not a list")? {
            calls.push(Fields::of(raw).and_then(|call| tool_call(&call)).ok_or("a tool call has no name")?);
        }
    }
    if let Some(old) = fields.get("function_call").and_then(Fields::of) {
        let mut call = function(&old).ok_or("a function call has no name")?;
        call.id.clone_from(&call.name);
        calls.push(call);
    }
    Ok(calls)
}

fn tool_call(call: &Fields<'_>) -> Option<ToolCall> {
    let inner = call.get("function").or_else(|| call.get("custom")).and_then(Fields::of);
    let mut read = function(inner.as_ref().unwrap_or(call))?;
    read.id = call.text("id").unwrap_or_default().into();
    Some(read)
}

/// A name and arguments, however they are called.
fn function(fields: &Fields<'_>) -> Option<ToolCall> {
    let arguments = ["arguments", "input", "params"].iter().find_map(|name| fields.get(name));
    let params = arguments.map_or_else(|| string(""), params);
    Some(ToolCall { id: String::new(), name: fields.text("name")?.into(), params })
}

/// Arguments come as JSON in a string; where that is no JSON, the string itself is what the model said.
fn params(arguments: &RawValue) -> Box<RawValue> {
    let parsed = text(arguments).and_then(|inside| RawValue::from_string(inside.into_owned()).ok());
    one_line(parsed.as_deref().unwrap_or(arguments))
}
