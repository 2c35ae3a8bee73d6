//! One block of a message's content.

use chorus_proto::{Attachment, ToolCall};
use serde_json::value::RawValue;

use super::super::fields::{Fields, list, text};
use super::super::values::{embedded, one_line};

/// A block.
pub(super) enum Block {
    Text(String),
    Picture(Attachment),
    Call(ToolCall),
    Answer {
        call: String,
        text: String,
        attachments: Vec<Attachment>,
        failed: bool,
    },
    /// Thinking, notices and whatever else has no place in a message.
    Other(String),
}

/// Whether a content is a list of blocks as goose has them: others tell their calls apart by other names.
pub(super) fn is_ours(content: &RawValue) -> bool {
    list(content).is_some_and(|blocks| blocks.iter().all(|raw| Fields::of(raw).is_some_and(|block| block.has("type"))))
}

impl Block {
    /// Reads a block; `number` names a picture in it.
    pub fn read(raw: &RawValue, number: usize) -> Self {
        let Some(fields) = Fields::of(raw) else {
            return text(raw).map_or_else(|| Self::Other("content".into()), |text| Self::Text(text.into_owned()));
        };
        let kind = fields.text("type").unwrap_or_default();
        let read = match kind.as_ref() {
            "text" => fields.text("text").map(|text| Self::Text(text.into_owned())),
            "image" => picture(&fields, number).map(Self::Picture),
            "toolRequest" | "frontendToolRequest" => call(&fields).map(Self::Call),
            "toolResponse" => answer(&fields),
            _ => None,
        };
        read.unwrap_or_else(|| Self::Other(if kind.is_empty() { "content".into() } else { kind.into_owned() }))
    }
}

fn picture(fields: &Fields<'_>, number: usize) -> Option<Attachment> {
    let media_type = fields.text("mimeType").or_else(|| fields.text("mime_type")).map(Into::into);
    Some(embedded(number, "image", media_type, fields.text("data")?.into_owned()))
}

/// What is inside `{"status": "success", "value": ...}` or `{"Ok": ...}`; the reason, where it says an error.
fn opened(raw: &RawValue) -> Result<&RawValue, String> {
    let Some(fields) = Fields::of(raw) else { return Ok(raw) };
    if let Some(error) = fields.get("error").or_else(|| fields.get("Err")) {
        return Err(text(error).map_or_else(|| one_line(error).get().to_owned(), Into::into));
    }
    Ok(fields.get("value").or_else(|| fields.get("Ok")).unwrap_or(raw))
}

fn call(fields: &Fields<'_>) -> Option<ToolCall> {
    let id = fields.text("id").unwrap_or_default().into_owned();
    let inside = match fields.get("toolCall").or_else(|| fields.get("tool_call")) {
        Some(raw) => Fields::of(opened(raw).ok()?)?,
        None => return named(id, fields),
    };
    named(id, &inside)
}

fn named(id: String, fields: &Fields<'_>) -> Option<ToolCall> {
    let params =
        fields.get("arguments").map_or_else(|| RawValue::from_string("{}".into()).unwrap_or_default(), one_line);
    Some(ToolCall { id, name: fields.text("name")?.into_owned(), params })
}

fn answer(fields: &Fields<'_>) -> Option<Block> {
    let call = fields.text("id")?.into_owned();
    let result = fields.get("toolResult").or_else(|| fields.get("tool_result"))?;
    let mut attachments = Vec::new();
    let (text, failed) = match opened(result) {
        Err(error) => (error, true),
        Ok(value) => {
            let inside = Fields::of(value);
            let failed = inside.as_ref().is_some_and(|inside| inside.flag("isError") || inside.flag("is_error"));
            let content = inside.as_ref().and_then(|inside| inside.get("content")).unwrap_or(value);
            (said(content, &mut attachments), failed)
        }
    };
    Some(Block::Answer { call, text, attachments, failed })
}

/// The text of a result; what is no text in it stands there as JSON.
fn said(content: &RawValue, attachments: &mut Vec<Attachment>) -> String {
    if let Some(text) = text(content) {
        return text.into_owned();
    }
    let Some(blocks) = list(content) else { return one_line(content).get().to_owned() };
    let mut texts = Vec::new();
    for raw in blocks {
        match Block::read(raw, attachments.len() + 1) {
            Block::Text(text) => texts.push(text),
            Block::Picture(picture) => attachments.push(picture),
            _ => texts.push(one_line(raw).get().to_owned()),
        }
    }
    texts.join("\n")
}
