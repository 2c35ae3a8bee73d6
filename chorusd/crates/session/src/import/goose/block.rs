//! Parses one block of a message's content.

use chorus_proto::{Attachment, ToolCall};
use serde_json::value::RawValue;

use super::super::json_values::{embedded_attachment, minify_value};
use super::super::raw_object::{RawObject, list_entries, string_value};

/// A block.
pub(super) enum GooseBlock {
    Text(String),
    Picture(Attachment),
    Call(ToolCall),
    Answer {
        call: String,
        text: String,
        attachments: Vec<Attachment>,
        failed: bool,
    },
    /// Thinking, notices, and everything else that a message has no field for.
    Other(String),
}

/// Returns whether a content is a list of blocks in goose's form. Other programs name the type of tool calls otherwise.
pub(super) fn is_goose_content(content: &RawValue) -> bool {
    list_entries(content).is_some_and(|blocks| {
        blocks.iter().all(|raw| RawObject::from_value(raw).is_some_and(|block| block.has("type")))
    })
}

impl GooseBlock {
    /// Parses a block. `number` is used in the name of an image.
    pub(super) fn parse(raw: &RawValue, number: usize) -> Self {
        let Some(fields) = RawObject::from_value(raw) else {
            return string_value(raw)
                .map_or_else(|| Self::Other("content".into()), |text| Self::Text(text.into_owned()));
        };
        let kind = fields.get_text("type").unwrap_or_default();
        let read = match kind.as_ref() {
            "text" => fields.get_text("text").map(|text| Self::Text(text.into_owned())),
            "image" => parse_image(&fields, number).map(Self::Picture),
            "toolRequest" | "frontendToolRequest" => parse_call(&fields).map(Self::Call),
            "toolResponse" => parse_tool_result(&fields),
            _ => None,
        };
        read.unwrap_or_else(|| Self::Other(if kind.is_empty() { "content".into() } else { kind.into_owned() }))
    }
}

fn parse_image(fields: &RawObject<'_>, number: usize) -> Option<Attachment> {
    let media_type = fields.get_text("mimeType").or_else(|| fields.get_text("mime_type")).map(Into::into);
    Some(embedded_attachment(number, "image", media_type, fields.get_text("data")?.into_owned()))
}

/// Unwraps `{"status": "success", "value": ...}` or `{"Ok": ...}`. Returns the text of an error.
fn unwrap_result(raw: &RawValue) -> Result<&RawValue, String> {
    let Some(fields) = RawObject::from_value(raw) else { return Ok(raw) };
    if let Some(error) = fields.get("error").or_else(|| fields.get("Err")) {
        return Err(string_value(error).map_or_else(|| minify_value(error).get().to_owned(), Into::into));
    }
    Ok(fields.get("value").or_else(|| fields.get("Ok")).unwrap_or(raw))
}

fn parse_call(fields: &RawObject<'_>) -> Option<ToolCall> {
    let id = fields.get_text("id").unwrap_or_default().into_owned();
    let inside = match fields.get("toolCall").or_else(|| fields.get("tool_call")) {
        Some(raw) => RawObject::from_value(unwrap_result(raw).ok()?)?,
        None => return build_call(id, fields),
    };
    build_call(id, &inside)
}

fn build_call(id: String, fields: &RawObject<'_>) -> Option<ToolCall> {
    let params =
        fields.get("arguments").map_or_else(|| RawValue::from_string("{}".into()).unwrap_or_default(), minify_value);
    Some(ToolCall { id, name: fields.get_text("name")?.into_owned(), params })
}

fn parse_tool_result(fields: &RawObject<'_>) -> Option<GooseBlock> {
    let call = fields.get_text("id")?.into_owned();
    let result = fields.get("toolResult").or_else(|| fields.get("tool_result"))?;
    let mut attachments = Vec::new();
    let (text, failed) = match unwrap_result(result) {
        Err(error) => (error, true),
        Ok(value) => {
            let inside = RawObject::from_value(value);
            let failed = inside.as_ref().is_some_and(|inside| inside.is_true("isError") || inside.is_true("is_error"));
            let content = inside.as_ref().and_then(|inside| inside.get("content")).unwrap_or(value);
            (result_text(content, &mut attachments), failed)
        }
    };
    Some(GooseBlock::Answer { call, text, attachments, failed })
}

/// Returns the text of a tool result. Parts that are not text are included as JSON.
fn result_text(content: &RawValue, attachments: &mut Vec<Attachment>) -> String {
    if let Some(text) = string_value(content) {
        return text.into_owned();
    }
    let Some(blocks) = list_entries(content) else { return minify_value(content).get().to_owned() };
    let mut texts = Vec::new();
    for raw in blocks {
        match GooseBlock::parse(raw, attachments.len() + 1) {
            GooseBlock::Text(text) => texts.push(text),
            GooseBlock::Picture(picture) => attachments.push(picture),
            _ => texts.push(minify_value(raw).get().to_owned()),
        }
    }
    texts.join("\n")
}
