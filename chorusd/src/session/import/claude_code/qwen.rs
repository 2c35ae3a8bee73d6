//! Lines of Qwen Code: a tree like that of Claude Code, whose messages are those of Gemini's API.

use chorus_proto::Usage;
use serde_json::value::RawValue;

use super::super::anthropic::content::{Block, Content, Media, ToolOutput};
use super::super::fields::{Fields, list};
use super::super::values::one_line;

/// Reads the parts of a message.
pub(super) fn content(parts: &RawValue) -> Result<Content<'_>, String> {
    let blocks: Vec<_> = list(parts).ok_or("its parts are not a list")?.into_iter().map(block).collect();
    if blocks.is_empty() { Err("its message is empty".into()) } else { Ok(Content(blocks)) }
}

fn block(raw: &RawValue) -> Block<'_> {
    Fields::of(raw).and_then(|part| known(&part)).unwrap_or(Block::Other(raw))
}

fn known<'a>(part: &Fields<'a>) -> Option<Block<'a>> {
    if part.flag("thought") {
        return None;
    }
    if let Some(text) = part.text("text") {
        return Some(Block::Text(text));
    }
    if let Some(call) = part.get("functionCall").and_then(Fields::of) {
        let id = call.text("id").unwrap_or_default();
        return Some(Block::Call { id, name: call.text("name")?, input: call.get("args") });
    }
    if let Some(answer) = part.get("functionResponse").and_then(Fields::of) {
        return Some(Block::Result(output(&answer)));
    }
    let data = part.get("inlineData").and_then(Fields::of)?;
    Some(Block::File(Media::embedded("file", data.text("mimeType"), data.text("data")?)))
}

/// What a tool gave back: `{"output": …}`, `{"error": …}`, or JSON of its own.
fn output<'a>(answer: &Fields<'a>) -> ToolOutput<'a> {
    let raw = answer.get("response");
    let inside = raw.and_then(Fields::of);
    let field = |name| inside.as_ref().and_then(|inside| inside.text(name));
    let error = field("error");
    let is_error = error.is_some();
    let text = error.or_else(|| field("output")).map(String::from);
    let text = text.or_else(|| raw.map(|raw| one_line(raw).get().to_owned())).unwrap_or_default();
    let call = answer.text("id").unwrap_or_default();
    ToolOutput { call, text, is_error, files: Vec::new(), others: Vec::new() }
}

/// The tokens of a line, as Gemini's API counts them.
pub(super) fn usage(fields: &Fields<'_>) -> Usage {
    let tokens = fields.get("usageMetadata").and_then(Fields::of);
    let count = |name| tokens.as_ref().and_then(|tokens| tokens.count(name));
    Usage {
        input_tokens: count("promptTokenCount"),
        output_tokens: count("candidatesTokenCount"),
        cache_read_tokens: count("cachedContentTokenCount"),
        ..Usage::default()
    }
}
