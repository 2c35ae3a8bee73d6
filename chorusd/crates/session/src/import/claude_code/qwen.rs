//! Lines of Qwen Code: a tree like that of Claude Code, with messages in the form of Gemini's API.

use chorus_proto::Usage;
use serde_json::value::RawValue;

use super::super::anthropic_blocks::content::{Content, ContentBlock, Media, ToolOutput};
use super::super::json_values::minify_value;
use super::super::raw_object::{RawObject, list_entries};

/// Parses the parts of a message.
pub(super) fn parse_content(parts: &RawValue) -> Result<Content<'_>, String> {
    let blocks: Vec<_> = list_entries(parts).ok_or("its parts are not a list")?.into_iter().map(parse_block).collect();
    if blocks.is_empty() { Err("its message is empty".into()) } else { Ok(Content(blocks)) }
}

fn parse_block(raw: &RawValue) -> ContentBlock<'_> {
    RawObject::from_value(raw).and_then(|part| parse_known_block(&part)).unwrap_or(ContentBlock::Other(raw))
}

fn parse_known_block<'a>(part: &RawObject<'a>) -> Option<ContentBlock<'a>> {
    if part.is_true("thought") {
        return None;
    }
    if let Some(text) = part.get_text("text") {
        return Some(ContentBlock::Text(text));
    }
    if let Some(call) = part.get("functionCall").and_then(RawObject::from_value) {
        let id = call.get_text("id").unwrap_or_default();
        return Some(ContentBlock::Call { id, name: call.get_text("name")?, input: call.get("args") });
    }
    if let Some(answer) = part.get("functionResponse").and_then(RawObject::from_value) {
        return Some(ContentBlock::Result(parse_tool_output(&answer)));
    }
    let data = part.get("inlineData").and_then(RawObject::from_value)?;
    Some(ContentBlock::File(Media::embedded("file", data.get_text("mimeType"), data.get_text("data")?)))
}

/// Parses a tool result: `{"output": …}`, `{"error": …}`, or other JSON.
fn parse_tool_output<'a>(answer: &RawObject<'a>) -> ToolOutput<'a> {
    let raw = answer.get("response");
    let inside = raw.and_then(RawObject::from_value);
    let field = |name| inside.as_ref().and_then(|inside| inside.get_text(name));
    let error = field("error");
    let is_error = error.is_some();
    let text = error.or_else(|| field("output")).map(String::from);
    let text = text.or_else(|| raw.map(|raw| minify_value(raw).get().to_owned())).unwrap_or_default();
    let call = answer.get_text("id").unwrap_or_default();
    ToolOutput { call, text, is_error, files: Vec::new(), others: Vec::new() }
}

/// Parses the token counts of Gemini's API.
pub(super) fn parse_usage(fields: &RawObject<'_>) -> Usage {
    let tokens = fields.get("usageMetadata").and_then(RawObject::from_value);
    let count = |name| tokens.as_ref().and_then(|tokens| tokens.get_u64(name));
    Usage {
        input_tokens: count("promptTokenCount"),
        output_tokens: count("candidatesTokenCount"),
        cache_read_tokens: count("cachedContentTokenCount"),
        ..Usage::default()
    }
}
