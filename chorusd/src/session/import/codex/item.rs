//! One item of a conversation.

use chorus_proto::{Attachment, Role, ToolCall};
use serde_json::value::RawValue;

use super::super::fields::{Fields, list, text};
use super::super::values::{linked, one_line, string};

/// What an item is to the conversation.
#[derive(Debug)]
pub(super) enum Item {
    Message {
        id: Option<String>,
        role: Role,
        content: Content,
    },
    Call(ToolCall),
    Output {
        call: String,
        content: Content,
        failed: bool,
    },
    /// Thinking, and whatever else has no place in a message: kept as it came.
    Other {
        kind: String,
        raw: Box<RawValue>,
    },
    /// A note of the program to itself.
    Nothing,
}

/// Text and pictures.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub text: String,
    pub attachments: Vec<Attachment>,
}

/// Whether items of this kind call a tool.
pub(super) fn is_call(kind: &str) -> bool {
    matches!(kind, "function_call" | "custom_tool_call" | "local_shell_call")
}

/// Whether items of this kind answer a call.
pub(super) fn is_output(kind: &str) -> bool {
    matches!(kind, "function_call_output" | "custom_tool_call_output" | "local_shell_call_output")
}

impl Item {
    /// Reads an item; the reason, where it is none. `whole` is the same as it came.
    pub fn read(fields: &Fields<'_>, whole: Option<&RawValue>) -> Result<Self, String> {
        let kind = fields.text("type").ok_or("an item without a type")?;
        let named = |name: &str| fields.text(name).filter(|text| !text.is_empty()).map(String::from);
        match kind.as_ref() {
            "message" => {
                let role = match fields.text("role").as_deref() {
                    Some("user") => Role::User,
                    Some("assistant") => Role::Assistant,
                    Some("system" | "developer") => Role::System,
                    Some(other) => {
                        return Err(format!("unknown role {:?}", other.chars().take(40).collect::<String>()));
                    }
                    None => return Err("no role".into()),
                };
                Ok(Self::Message { id: named("id"), role, content: content(fields.get("content"))? })
            }
            kind if is_call(kind) => {
                let id = named("call_id").or(named("id")).unwrap_or_default();
                let (name, params) = match kind {
                    "local_shell_call" => (Some("local_shell".to_owned()), fields.get("action").map(one_line)),
                    "custom_tool_call" => (named("name"), fields.get("input").map(one_line)),
                    _ => (named("name"), fields.get("arguments").map(arguments)),
                };
                let name = name.ok_or("a call without a name")?;
                Ok(Self::Call(ToolCall { id, name, params: params.unwrap_or_else(|| string("")) }))
            }
            kind if is_output(kind) => {
                let call = named("call_id").or(named("id")).unwrap_or_default();
                let output = fields.get("output");
                let inside = output.and_then(Fields::of);
                let failed =
                    inside.as_ref().and_then(|inside| inside.get("success")).is_some_and(|ok| ok.get() == "false");
                let content = match &inside {
                    Some(inside) => content(inside.get("content_items").or(inside.get("content")))?,
                    None => content(output)?,
                };
                Ok(Self::Output { call, content, failed })
            }
            "ghost_snapshot" => Ok(Self::Nothing),
            other => Ok(Self::Other { kind: other.to_owned(), raw: whole.map_or_else(|| again(fields), one_line) }),
        }
    }
}

/// Arguments come as JSON in a string; where that is no JSON, the string itself is what the model said.
fn arguments(raw: &RawValue) -> Box<RawValue> {
    let parsed = text(raw).and_then(|inside| RawValue::from_string(inside.into_owned()).ok());
    one_line(parsed.as_deref().unwrap_or(raw))
}

fn content(raw: Option<&RawValue>) -> Result<Content, String> {
    let mut content = Content::default();
    let Some(raw) = raw else { return Ok(content) };
    if let Some(text) = text(raw) {
        content.text = text.into_owned();
        return Ok(content);
    }
    let mut texts: Vec<String> = Vec::new();
    for part in list(raw).ok_or("content is neither text nor a list of parts")? {
        let Some(part) = Fields::of(part) else { continue };
        if let Some(url) = part.text("image_url") {
            content.attachments.push(linked(content.attachments.len() + 1, "image", &url));
        } else if let Some(text) = part.text("text").or_else(|| part.text("refusal")) {
            texts.push(text.into_owned());
        }
    }
    content.text = texts.join("\n");
    Ok(content)
}

/// The object of these fields.
fn again(fields: &Fields<'_>) -> Box<RawValue> {
    let parts: Vec<_> =
        fields.iter().map(|(key, raw)| format!("{}:{}", string(key).get(), one_line(raw).get())).collect();
    RawValue::from_string(format!("{{{}}}", parts.join(","))).unwrap_or_default()
}
