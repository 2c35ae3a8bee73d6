//! Parses the content blocks of Anthropic's API.

use std::borrow::Cow;

use chorus_proto::Attachment;
use serde_json::value::RawValue;

use super::super::json_values::{embedded_attachment, linked_attachment};
use super::super::raw_object::{RawObject, list_entries, string_value};

/// One block of a content.
#[derive(Debug)]
pub(in super::super) enum ContentBlock<'a> {
    Text(Cow<'a, str>),
    Call {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Option<&'a RawValue>,
    },
    Result(ToolOutput<'a>),
    /// An attached image or document.
    File(Media<'a>),
    /// Thinking, and everything else that a message has no field for.
    Other(&'a RawValue),
}

/// The result of a tool call.
#[derive(Debug)]
pub(in super::super) struct ToolOutput<'a> {
    pub call: Cow<'a, str>,
    pub text: String,
    pub is_error: bool,
    pub files: Vec<Media<'a>>,
    pub others: Vec<&'a RawValue>,
}

/// An image or document, in base64 or as a URL.
#[derive(Debug)]
pub(in super::super) struct Media<'a> {
    kind: &'static str,
    media_type: Option<Cow<'a, str>>,
    data: Cow<'a, str>,
    link: bool,
}

impl<'a> Media<'a> {
    /// Creates a file that is given in base64.
    pub(crate) fn embedded(kind: &'static str, media_type: Option<Cow<'a, str>>, data: Cow<'a, str>) -> Self {
        Self { kind, media_type, data, link: false }
    }

    /// Converts to the attachment with that number.
    pub(crate) fn into_attachment(self, number: usize) -> Attachment {
        if self.link {
            linked_attachment(number, self.kind, &self.data)
        } else {
            embedded_attachment(number, self.kind, self.media_type.map(Into::into), self.data.into_owned())
        }
    }
}

/// All blocks of a message.
#[derive(Debug)]
pub(in super::super) struct Content<'a>(pub Vec<ContentBlock<'a>>);

impl<'a> Content<'a> {
    /// Creates a content with a single text.
    pub(crate) fn from_text(text: Cow<'a, str>) -> Self {
        Self(vec![ContentBlock::Text(text)])
    }

    /// Iterates over the texts in order.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.as_ref()),
            _ => None,
        })
    }

    /// Returns whether it contains nothing but white space.
    pub(crate) fn is_blank(&self) -> bool {
        self.0.iter().all(|block| matches!(block, ContentBlock::Text(text) if text.trim().is_empty()))
    }

    /// Iterates over the ids of its tool calls.
    pub(crate) fn call_ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|block| match block {
            ContentBlock::Call { id, .. } => Some(id.as_ref()),
            _ => None,
        })
    }

    /// Iterates over the ids of the calls whose results it contains.
    pub(crate) fn result_ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|block| match block {
            ContentBlock::Result(output) => Some(output.call.as_ref()),
            _ => None,
        })
    }
}

/// Parses a content: a text or a list of blocks.
pub(in super::super) fn parse_content(raw: &RawValue) -> Result<Content<'_>, String> {
    if let Some(text) = string_value(raw) {
        return Ok(Content::from_text(text));
    }
    let blocks: Vec<ContentBlock<'_>> =
        list_entries(raw).ok_or("its content is not text or blocks")?.into_iter().map(parse_block).collect();
    if blocks.is_empty() {
        return Err("its message is empty".into());
    }
    // Numbers and lists are not blocks. A content of nothing else was not understood.
    if blocks.iter().all(|block| matches!(block, ContentBlock::Other(raw) if !raw.get().starts_with('{'))) {
        return Err("its content has no readable block".into());
    }
    Ok(Content(blocks))
}

/// Returns whether a content has blocks that only Anthropic's API has: tool calls, results, thinking, and files with a
/// `source`.
pub(in super::super) fn has_anthropic_blocks(content: &RawValue) -> bool {
    let ours = |raw: &RawValue| {
        let Some(block) = RawObject::from_value(raw) else { return false };
        block.get_text("type").is_some_and(|kind| match kind.as_ref() {
            "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "server_tool_use" => true,
            "image" | "document" => block.has("source"),
            _ => false,
        })
    };
    list_entries(content).is_some_and(|blocks| blocks.into_iter().any(ours))
}

fn parse_block(raw: &RawValue) -> ContentBlock<'_> {
    if let Some(text) = string_value(raw) {
        return ContentBlock::Text(text);
    }
    RawObject::from_value(raw).and_then(|fields| parse_known_block(&fields)).unwrap_or(ContentBlock::Other(raw))
}

fn parse_known_block<'a>(fields: &RawObject<'a>) -> Option<ContentBlock<'a>> {
    match fields.get_text("type")?.as_ref() {
        "text" => Some(ContentBlock::Text(fields.get_text("text")?)),
        "tool_use" => {
            // Cursor leaves out the id.
            let id = fields.get_text("id").unwrap_or_default();
            Some(ContentBlock::Call { id, name: fields.get_text("name")?, input: fields.get("input") })
        }
        "tool_result" => {
            let mut output = ToolOutput {
                call: fields.get_text("tool_use_id").unwrap_or_default(),
                text: String::new(),
                is_error: fields.is_true("is_error"),
                files: Vec::new(),
                others: Vec::new(),
            };
            output.set_content(fields.get("content"));
            Some(ContentBlock::Result(output))
        }
        "image" => parse_media(fields, "image").map(ContentBlock::File),
        "document" => parse_media(fields, "document").map(ContentBlock::File),
        _ => None,
    }
}

impl<'a> ToolOutput<'a> {
    fn set_content(&mut self, raw: Option<&'a RawValue>) {
        let Some(raw) = raw else { return };
        let Some(parts) = list_entries(raw) else {
            match string_value(raw) {
                Some(text) => self.text = text.into_owned(),
                None => self.others.push(raw),
            }
            return;
        };
        let mut texts = Vec::new();
        for raw in parts {
            match parse_block(raw) {
                ContentBlock::Text(text) => texts.push(text),
                ContentBlock::File(file) => self.files.push(file),
                _ => self.others.push(raw),
            }
        }
        self.text = texts.join("\n");
    }
}

fn parse_media<'a>(fields: &RawObject<'a>, kind: &'static str) -> Option<Media<'a>> {
    let source = RawObject::from_value(fields.get("source")?)?;
    let media_type = source.get_text("media_type");
    match source.get_text("type")?.as_ref() {
        "base64" => Some(Media { kind, media_type, data: source.get_text("data")?, link: false }),
        "url" => Some(Media { kind, media_type, data: source.get_text("url")?, link: true }),
        _ => None,
    }
}
