//! Parses one item of a conversation.

use chorus_proto::{Attachment, Role, ToolCall};
use serde_json::value::RawValue;

use super::super::json_values::{json_string, linked_attachment, minify_value};
use super::super::raw_object::{RawObject, list_entries, string_value};

/// The kind of an item.
#[derive(Debug)]
pub(super) enum Item {
    Message {
        id: Option<String>,
        role: Role,
        content: ParsedContent,
    },
    Call(ToolCall),
    Output {
        call: String,
        content: ParsedContent,
        failed: bool,
    },
    /// Thinking, and everything else that a message has no field for, unchanged.
    Other {
        kind: String,
        raw: Box<RawValue>,
    },
    /// A note of the program to itself.
    Ignored,
}

/// Text and images.
#[derive(Debug, Default)]
pub(super) struct ParsedContent {
    pub text: String,
    pub attachments: Vec<Attachment>,
}

/// Returns whether items of this kind are tool calls.
pub(super) fn is_call(kind: &str) -> bool {
    matches!(kind, "function_call" | "custom_tool_call" | "local_shell_call")
}

/// Returns whether items of this kind are tool results.
pub(super) fn is_output(kind: &str) -> bool {
    matches!(kind, "function_call_output" | "custom_tool_call_output" | "local_shell_call_output")
}

impl Item {
    /// Parses an item. Returns the reason if it is not one. `whole` is the unparsed item.
    pub(super) fn parse(fields: &RawObject<'_>, whole: Option<&RawValue>) -> Result<Self, String> {
        let kind = fields.get_text("type").ok_or("an item without a type")?;
        let named = |name: &str| fields.get_text(name).filter(|text| !text.is_empty()).map(String::from);
        match kind.as_ref() {
            "message" => {
                let role = match fields.get_text("role").as_deref() {
                    Some("user") => Role::User,
                    Some("assistant") => Role::Assistant,
                    Some("system" | "developer") => Role::System,
                    Some(other) => {
                        return Err(format!("unknown role {:?}", other.chars().take(40).collect::<String>()));
                    }
                    None => return Err("no role".into()),
                };
                Ok(Self::Message { id: named("id"), role, content: parse_content(fields.get("content"))? })
            }
            kind if is_call(kind) => {
                let id = named("call_id").or(named("id")).unwrap_or_default();
                let (name, params) = match kind {
                    "local_shell_call" => (Some("local_shell".to_owned()), fields.get("action").map(minify_value)),
                    "custom_tool_call" => (named("name"), fields.get("input").map(minify_value)),
                    _ => (named("name"), fields.get("arguments").map(parse_arguments)),
                };
                let name = name.ok_or("a call without a name")?;
                Ok(Self::Call(ToolCall { id, name, params: params.unwrap_or_else(|| json_string("")) }))
            }
            kind if is_output(kind) => {
                let call = named("call_id").or(named("id")).unwrap_or_default();
                let output = fields.get("output");
                let inside = output.and_then(RawObject::from_value);
                let failed =
                    inside.as_ref().and_then(|inside| inside.get("success")).is_some_and(|ok| ok.get() == "false");
                let content = match &inside {
                    Some(inside) => parse_content(inside.get("content_items").or(inside.get("content")))?,
                    None => parse_content(output)?,
                };
                Ok(Self::Output { call, content, failed })
            }
            "ghost_snapshot" => Ok(Self::Ignored),
            other => Ok(Self::Other {
                kind: other.to_owned(),
                raw: whole.map_or_else(|| to_json_object(fields), minify_value),
            }),
        }
    }
}

/// Converts arguments, which are JSON in a string. If they are not valid JSON, keeps the string as the model wrote it.
fn parse_arguments(raw: &RawValue) -> Box<RawValue> {
    let parsed = string_value(raw).and_then(|inside| RawValue::from_string(inside.into_owned()).ok());
    minify_value(parsed.as_deref().unwrap_or(raw))
}

fn parse_content(raw: Option<&RawValue>) -> Result<ParsedContent, String> {
    let mut content = ParsedContent::default();
    let Some(raw) = raw else { return Ok(content) };
    if let Some(text) = string_value(raw) {
        content.text = text.into_owned();
        return Ok(content);
    }
    let mut texts: Vec<String> = Vec::new();
    for part in list_entries(raw).ok_or("content is not text or a list of parts")? {
        let Some(part) = RawObject::from_value(part) else { continue };
        if let Some(url) = part.get_text("image_url") {
            content.attachments.push(linked_attachment(content.attachments.len() + 1, "image", &url));
        } else if let Some(text) = part.get_text("text").or_else(|| part.get_text("refusal")) {
            texts.push(text.into_owned());
        }
    }
    content.text = texts.join("\n");
    Ok(content)
}

/// Builds a JSON object from the fields.
fn to_json_object(fields: &RawObject<'_>) -> Box<RawValue> {
    let parts: Vec<_> =
        fields.iter().map(|(key, raw)| format!("{}:{}", json_string(key).get(), minify_value(raw).get())).collect();
    RawValue::from_string(format!("{{{}}}", parts.join(","))).unwrap_or_default()
}
