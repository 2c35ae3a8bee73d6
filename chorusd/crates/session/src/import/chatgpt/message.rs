//! Parses one message of a conversation.

use chorus_proto::{Author, NewMessage, Role, ToolCall};
use serde_json::value::RawValue;

use super::super::json_values::{import_source, json_string, minify_value, parse_timestamp};
use super::super::raw_object::RawObject;
use super::content::{self, ParsedContent};

/// A parsed message, and the values that a message has no field for.
pub(super) struct ParsedMessage {
    pub message: NewMessage,
    pub others: Vec<(String, Box<RawValue>)>,
    pub model: Option<String>,
    /// There is nothing to display.
    pub silent: bool,
}

/// Parses a message. Returns the reason if it is not one.
pub(super) fn parse(raw: &RawValue) -> Result<ParsedMessage, String> {
    let fields = RawObject::from_value(raw).ok_or("a message that is not an object")?;
    let author = fields.get("author").and_then(RawObject::from_value).ok_or("a message without an author")?;
    let role = match author.get_text("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system" | "developer") => Role::System,
        Some("tool" | "function") => Role::ToolResult,
        Some(other) => return Err(format!("unknown role {:?}", other.chars().take(40).collect::<String>())),
        None => return Err("no role".into()),
    };
    let metadata = fields.get("metadata").and_then(RawObject::from_value);
    let mut content = content::parse(fields.get("content"))?;
    content.add_files(metadata.as_ref().and_then(|metadata| metadata.get("attachments")));
    let silent = content.is_blank();
    let ParsedContent { text, attachments, others } = content;
    let mut message = NewMessage::text(role, text);
    message.id = fields.get_text("id").filter(|id| !id.is_empty()).map(Into::into);
    message.timestamp = fields.get("create_time").and_then(parse_timestamp);
    message.attachments = attachments;
    message.source = Some(import_source("chatgpt"));
    let name = author.get_text("name").filter(|name| !name.is_empty()).map(String::from);
    match role {
        Role::ToolResult => message.name = name,
        _ => message.author = name.map(|name| Author { id: name.clone(), name }),
    }
    let recipient = fields.get_text("recipient").filter(|to| !matches!(to.as_ref(), "" | "all"));
    if let Some(tool) = recipient.filter(|_| role == Role::Assistant && !silent) {
        let said = std::mem::take(&mut message.content);
        let params =
            RawValue::from_string(said.clone()).map_or_else(|_| json_string(&said), |params| minify_value(&params));
        let id = message.id.clone().unwrap_or_default();
        message.tool_calls = vec![ToolCall { id, name: tool.into(), params }];
    }
    let model = metadata.and_then(|metadata| metadata.get_text("model_slug").map(Into::into));
    Ok(ParsedMessage { message, others, model, silent })
}
