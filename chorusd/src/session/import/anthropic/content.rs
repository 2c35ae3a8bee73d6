//! The blocks of a message, as the API of Anthropic has them.

use std::borrow::Cow;

use chorus_proto::Attachment;
use serde_json::value::RawValue;

use super::super::fields::{Fields, list, text};
use super::super::values::{embedded, linked};

/// One block.
#[derive(Debug)]
pub(in super::super) enum Block<'a> {
    Text(Cow<'a, str>),
    Call {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Option<&'a RawValue>,
    },
    Result(ToolOutput<'a>),
    /// A picture or document that came along.
    File(Media<'a>),
    /// Thinking, and whatever else has no place in a message.
    Other(&'a RawValue),
}

/// What a tool gave back.
#[derive(Debug)]
pub(in super::super) struct ToolOutput<'a> {
    pub call: Cow<'a, str>,
    pub text: String,
    pub is_error: bool,
    pub files: Vec<Media<'a>>,
    pub others: Vec<&'a RawValue>,
}

/// A picture or document, in base64 or as a link.
#[derive(Debug)]
pub(in super::super) struct Media<'a> {
    kind: &'static str,
    media_type: Option<Cow<'a, str>>,
    data: Cow<'a, str>,
    link: bool,
}

impl<'a> Media<'a> {
    /// A file that came in base64.
    pub fn embedded(kind: &'static str, media_type: Option<Cow<'a, str>>, data: Cow<'a, str>) -> Self {
        Self { kind, media_type, data, link: false }
    }

    /// As the attachment of that number.
    pub fn attachment(self, number: usize) -> Attachment {
        if self.link {
            linked(number, self.kind, &self.data)
        } else {
            embedded(number, self.kind, self.media_type.map(Into::into), self.data.into_owned())
        }
    }
}

/// All blocks of a message.
#[derive(Debug)]
pub(in super::super) struct Content<'a>(pub Vec<Block<'a>>);

impl<'a> Content<'a> {
    /// One text.
    pub fn of(text: Cow<'a, str>) -> Self {
        Self(vec![Block::Text(text)])
    }

    /// The texts, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_ref()),
            _ => None,
        })
    }

    /// Whether there is nothing in it but white space.
    pub fn is_blank(&self) -> bool {
        self.0.iter().all(|block| matches!(block, Block::Text(text) if text.trim().is_empty()))
    }

    /// Ids of the calls made here.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|block| match block {
            Block::Call { id, .. } => Some(id.as_ref()),
            _ => None,
        })
    }

    /// Ids of the calls answered here.
    pub fn answers(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|block| match block {
            Block::Result(output) => Some(output.call.as_ref()),
            _ => None,
        })
    }
}

/// Reads a content: a text or a list of blocks.
pub(in super::super) fn content(raw: &RawValue) -> Result<Content<'_>, String> {
    if let Some(text) = text(raw) {
        return Ok(Content::of(text));
    }
    let blocks: Vec<Block<'_>> =
        list(raw).ok_or("its content is neither text nor blocks")?.into_iter().map(block).collect();
    if blocks.is_empty() {
        return Err("its message is empty".into());
    }
    // A number or a list is no block; a line that has nothing else was not understood.
    if blocks.iter().all(|block| matches!(block, Block::Other(raw) if !raw.get().starts_with('{'))) {
        return Err("its content has no readable block".into());
    }
    Ok(Content(blocks))
}

/// Whether a content has blocks that only this API has: calls, results, thinking, and files by their `source`.
pub(in super::super) fn is_ours(content: &RawValue) -> bool {
    let ours = |raw: &RawValue| {
        let Some(block) = Fields::of(raw) else { return false };
        block.text("type").is_some_and(|kind| match kind.as_ref() {
            "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "server_tool_use" => true,
            "image" | "document" => block.has("source"),
            _ => false,
        })
    };
    list(content).is_some_and(|blocks| blocks.into_iter().any(ours))
}

fn block(raw: &RawValue) -> Block<'_> {
    if let Some(text) = text(raw) {
        return Block::Text(text);
    }
    Fields::of(raw).and_then(|fields| known(&fields)).unwrap_or(Block::Other(raw))
}

fn known<'a>(fields: &Fields<'a>) -> Option<Block<'a>> {
    match fields.text("type")?.as_ref() {
        "text" => Some(Block::Text(fields.text("text")?)),
        "tool_use" => {
            // Cursor leaves the ids out.
            let id = fields.text("id").unwrap_or_default();
            Some(Block::Call { id, name: fields.text("name")?, input: fields.get("input") })
        }
        "tool_result" => {
            let mut output = ToolOutput {
                call: fields.text("tool_use_id").unwrap_or_default(),
                text: String::new(),
                is_error: fields.flag("is_error"),
                files: Vec::new(),
                others: Vec::new(),
            };
            output.fill(fields.get("content"));
            Some(Block::Result(output))
        }
        "image" => media(fields, "image").map(Block::File),
        "document" => media(fields, "document").map(Block::File),
        _ => None,
    }
}

impl<'a> ToolOutput<'a> {
    fn fill(&mut self, raw: Option<&'a RawValue>) {
        let Some(raw) = raw else { return };
        let Some(parts) = list(raw) else {
            match text(raw) {
                Some(text) => self.text = text.into_owned(),
                None => self.others.push(raw),
            }
            return;
        };
        let mut texts = Vec::new();
        for raw in parts {
            match block(raw) {
                Block::Text(text) => texts.push(text),
                Block::File(file) => self.files.push(file),
                _ => self.others.push(raw),
            }
        }
        self.text = texts.join("\n");
    }
}

fn media<'a>(fields: &Fields<'a>, kind: &'static str) -> Option<Media<'a>> {
    let source = Fields::of(fields.get("source")?)?;
    let media_type = source.text("media_type");
    match source.text("type")?.as_ref() {
        "base64" => Some(Media { kind, media_type, data: source.text("data")?, link: false }),
        "url" => Some(Media { kind, media_type, data: source.text("url")?, link: true }),
        _ => None,
    }
}
