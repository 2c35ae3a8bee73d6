//! Parses one chat message.

use chorus_proto::{Author, Message, NewMessage, Role, ToolCall};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::super::anthropic_blocks::content::has_anthropic_blocks;
use super::super::json_values::{
    import_source, json_list, json_string, minify_value, parse_timestamp, provider_object,
};
use super::super::raw_object::{RawObject, list_entries, string_value};
use super::{anthropic_messages, content};

/// Fields that may contain the time.
pub(super) const TIME_FIELDS: [&str; 5] = ["timestamp", "created_at", "created", "create_time", "ts"];

/// Fields that a message has a place for. All others are kept in `provider`.
const KNOWN_FIELDS: [&str; 11] = [
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

/// Parses an entry in either form. Returns the reason if it has no message.
pub(super) fn parse_messages(
    fields: &RawObject<'_>,
    now: Timestamp,
    new_id: &mut dyn FnMut() -> String,
) -> Result<Vec<Message>, String> {
    if let Some(raw) = fields.get("content").filter(|raw| has_anthropic_blocks(raw)) {
        return anthropic_messages::parse_messages(
            fields,
            parse_role(fields)?,
            raw,
            find_time(fields).unwrap_or(now),
            new_id,
        );
    }
    Ok(vec![parse_message(fields, now, new_id)?])
}

fn find_time(fields: &RawObject<'_>) -> Option<Timestamp> {
    TIME_FIELDS.iter().find_map(|name| fields.get(name).and_then(parse_timestamp))
}

/// Parses a message of any role. Returns the reason if it is not one.
pub(in super::super) fn parse_message(
    fields: &RawObject<'_>,
    now: Timestamp,
    new_id: &mut dyn FnMut() -> String,
) -> Result<Message, String> {
    let role = parse_role(fields)?;
    let content = content::parse(fields.get("content"))?;
    let mut message = NewMessage::text(role, content.text);
    message.id = fields.get_text("id").filter(|id| !id.is_empty()).map(Into::into);
    message.timestamp = find_time(fields);
    message.attachments = content.attachments;
    message.is_error = fields.is_true("is_error");
    message.source = Some(import_source("openai"));

    let mut kept: Vec<(String, Box<RawValue>)> = fields
        .iter()
        .filter(|(key, value)| !KNOWN_FIELDS.contains(key) && !TIME_FIELDS.contains(key) && value.get() != "null")
        .map(|(key, value)| (key.to_owned(), minify_value(value)))
        .collect();
    if !content.others.is_empty() {
        kept.push(("parts".into(), json_list(&content.others)));
    }
    if let Some(refusal) = fields.get("refusal") {
        // A refusal becomes the text if there is none, and is kept in `provider` as well.
        if message.content.is_empty() {
            message.content = string_value(refusal).unwrap_or_default().into_owned();
        }
        kept.push(("refusal".into(), minify_value(refusal)));
    }
    message.provider = provider_object("openai", &kept);

    let name = fields.get_text("name").filter(|name| !name.is_empty());
    match role {
        Role::ToolResult => {
            // The older function calls had no ids: the name connects a result with its call.
            message.tool_call_id = fields.get_text("tool_call_id").or_else(|| name.clone()).map(Into::into);
            let named = |field: &str| fields.get_text(field).filter(|name| !name.is_empty());
            message.name = name.or_else(|| named("tool_name")).map(Into::into);
        }
        _ => message.author = name.map(|name| Author { id: name.to_string(), name: name.into() }),
    }
    if role == Role::Assistant {
        message.tool_calls = parse_tool_calls(fields)?;
    }
    if message.content.is_empty() && message.attachments.is_empty() && message.tool_calls.is_empty() {
        check_empty_message(fields, message.tool_call_id.is_some())?;
    }
    Ok(message.complete(new_id, now))
}

/// Checks an entry without any content: it must be empty on purpose, not unreadable.
fn check_empty_message(fields: &RawObject<'_>, answers: bool) -> Result<(), String> {
    if answers {
        // A call must not lose its result.
        return Ok(());
    }
    match fields.get("content").map(list_entries) {
        // An empty text.
        Some(None) => Ok(()),
        Some(Some(parts)) if parts.is_empty() => Err("its content is empty".into()),
        Some(Some(parts)) if parts.iter().any(|part| string_value(part).is_some() || content::is_text(part)) => Ok(()),
        Some(Some(_)) => Err("its content has no readable part".into()),
        None if fields.contains_key("content") || fields.has("refusal") => Ok(()),
        None => Err("no content".into()),
    }
}

fn parse_role(fields: &RawObject<'_>) -> Result<Role, String> {
    let role = fields.get_text("role").ok_or("no role")?;
    match role.as_ref() {
        "system" | "developer" => Ok(Role::System),
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "tool" | "function" | "tool_result" => Ok(Role::ToolResult),
        other => Err(format!("unknown role {:?}", other.chars().take(40).collect::<String>())),
    }
}

fn parse_tool_calls(fields: &RawObject<'_>) -> Result<Vec<ToolCall>, String> {
    let mut calls = Vec::new();
    if let Some(raw) = fields.get("tool_calls") {
        // Databases store the list as text.
        let inside = string_value(raw).and_then(|inside| RawValue::from_string(inside.into_owned()).ok());
        for raw in list_entries(inside.as_deref().unwrap_or(raw)).ok_or("tool_calls is not a list")? {
            calls.push(
                RawObject::from_value(raw).and_then(|call| parse_tool_call(&call)).ok_or("a tool call has no name")?,
            );
        }
    }
    if let Some(old) = fields.get("function_call").and_then(RawObject::from_value) {
        let mut call = parse_function(&old).ok_or("a function call has no name")?;
        call.id.clone_from(&call.name);
        calls.push(call);
    }
    Ok(calls)
}

fn parse_tool_call(call: &RawObject<'_>) -> Option<ToolCall> {
    let inner = call.get("function").or_else(|| call.get("custom")).and_then(RawObject::from_value);
    let mut read = parse_function(inner.as_ref().unwrap_or(call))?;
    read.id = call.get_text("id").unwrap_or_default().into();
    Some(read)
}

/// Parses a name and arguments, whose field has several names.
fn parse_function(fields: &RawObject<'_>) -> Option<ToolCall> {
    let arguments = ["arguments", "input", "params"].iter().find_map(|name| fields.get(name));
    let params = arguments.map_or_else(|| json_string(""), parse_arguments);
    Some(ToolCall { id: String::new(), name: fields.get_text("name")?.into(), params })
}

/// Converts arguments, which are JSON in a string. If they are not valid JSON, keeps the string as the model wrote it.
fn parse_arguments(arguments: &RawValue) -> Box<RawValue> {
    let parsed = string_value(arguments).and_then(|inside| RawValue::from_string(inside.into_owned()).ok());
    minify_value(parsed.as_deref().unwrap_or(arguments))
}
