//! Converts a conversation for the Messages API. JSON that must keep its digits is never parsed into numbers.

use std::borrow::Cow;

use chorus_config::ProviderKind;
use chorus_proto::{Message, Role};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::super::request::{ModelRequest, OutputFormat, ToolSpec};
use super::super::images::{RenderedAttachment, render_attachment};
use super::super::tool_call_ids::{self, IdForm};
use super::super::tool_calls::ensure_object;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<Content<'a>>,
}

/// A block, or one that is sent back unchanged.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Block(Box<Block<'a>>),
    Echo(Box<RawValue>),
}

#[derive(Serialize, Default)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Vec<Block<'a>>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

/// The provider blocks that a message stores.
#[derive(Deserialize)]
struct EchoedBlocks<'a> {
    kind: String,
    provider: String,
    #[serde(borrow)]
    blocks: Vec<&'a RawValue>,
}

/// Builds the body of the request.
pub(super) fn build_body(provider: &str, model: &str, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
    serialise_body(provider, model, request, Some(request.max_tokens))
}

/// Builds the body of the request that counts its tokens: the same without what concerns the reply.
pub(super) fn build_count_body(provider: &str, model: &str, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
    serialise_body(provider, model, request, None)
}

/// Builds a body; one without a limit of the reply asks for no reply.
fn serialise_body(
    provider: &str,
    model: &str,
    request: &ModelRequest,
    max_tokens: Option<u32>,
) -> serde_json::Result<Vec<u8>> {
    let mut tools: Vec<_> =
        request.tools.iter().map(|spec| tool_definition(spec)).chain(request.output_format.map(output_tool)).collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = cache_marker();
    }
    let mut system = Vec::new();
    for (index, piece) in request.system.iter().enumerate() {
        if !piece.trim().is_empty() {
            system.push(text_block(&**piece));
        }
        if index + 1 == request.stable_system_pieces
            && let Some(last) = system.last_mut()
        {
            last.cache_control = cache_marker();
        }
    }
    let mut messages: Vec<WireMessage<'_>> = Vec::new();
    for message in &request.messages {
        let (role, content) = match message.role {
            Role::Assistant => ("assistant", assistant_content(provider, message)),
            Role::ToolResult => ("user", vec![Content::Block(Box::new(tool_result(message)))]),
            // The window quotes system messages; one that is here all the same gets no more authority than a user.
            Role::User | Role::System => ("user", user_content(message)),
        };
        if content.is_empty() {
            continue;
        }
        match messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            _ => messages.push(WireMessage { role, content }),
        }
    }
    if request.cache_messages {
        // Mark the end of the conversation for the next call, and the previous user message, whose prefix the last call
        // had cached.
        messages.iter_mut().rev().filter(|turn| turn.role == "user").take(2).for_each(mark_last_block);
    }
    let tool_choice = match request.output_format {
        Some(shape) => Some(json!({"type": "tool", "name": shape.name})),
        None => (request.forbid_tool_calls && !tools.is_empty()).then(|| json!({"type": "none"})),
    };
    serde_json::to_vec(&Body { model, max_tokens, stream: max_tokens.is_some(), system, tools, tool_choice, messages })
}

/// Marks a block up to which the provider caches the prompt for calls with the same beginning. A request may have four.
fn cache_marker() -> Option<Value> {
    Some(json!({"type": "ephemeral"}))
}

/// All blocks of a user message can be marked.
fn mark_last_block(turn: &mut WireMessage<'_>) {
    if let Some(Content::Block(last)) = turn.content.last_mut() {
        last.cache_control = cache_marker();
    }
}

fn tool_definition(spec: &ToolSpec) -> Tool<'_> {
    let input_schema = if spec.parameters.is_object() { spec.parameters.clone() } else { json!({"type": "object"}) };
    Tool { name: &spec.name, description: &spec.description, input_schema, cache_control: None }
}

/// An output format becomes a tool whose parameters have that format.
fn output_tool(shape: &'static OutputFormat) -> Tool<'static> {
    let input_schema = (shape.schema)();
    Tool { name: shape.name, description: shape.description, input_schema, cache_control: None }
}

fn text_block<'a>(text: impl Into<Cow<'a, str>>) -> Block<'a> {
    Block { kind: "text", text: Some(text.into()), ..Block::default() }
}

fn user_content(message: &Message) -> Vec<Content<'_>> {
    let mut content = attachment_blocks(message);
    if !message.content.trim().is_empty() {
        content.push(text_block(&*message.content));
    }
    content.into_iter().map(|block| Content::Block(Box::new(block))).collect()
}

/// Attachments come before the text that refers to them.
fn attachment_blocks(message: &Message) -> Vec<Block<'_>> {
    let source = |source| Block { kind: "image", source: Some(source), ..Block::default() };
    let block = |attachment| match render_attachment(attachment, ProviderKind::Anthropic) {
        RenderedAttachment::Data(kind, data) => source(json!({"type": "base64", "media_type": kind, "data": data})),
        RenderedAttachment::Url(url) => source(json!({"type": "url", "url": url})),
        RenderedAttachment::Note(note) => text_block(note),
    };
    message.attachments.iter().map(block).collect()
}

fn assistant_content<'a>(provider: &str, message: &'a Message) -> Vec<Content<'a>> {
    // A reply that was truncated during thinking must not be sent with it: the API refuses replies that end with
    // thinking.
    let only_thought = message.content.trim().is_empty() && message.tool_calls.is_empty();
    let kept = if only_thought { Vec::new() } else { echoed_blocks(provider, message) };
    let mut content: Vec<Content<'a>> = kept.into_iter().map(Content::Echo).collect();
    if !message.content.trim().is_empty() {
        content.push(Content::Block(Box::new(text_block(&*message.content))));
    }
    content.extend(message.tool_calls.iter().map(|call| {
        Content::Block(Box::new(Block {
            kind: "tool_use",
            id: Some(tool_call_ids::sanitize_id(&call.id, IdForm::Plain)),
            name: Some(tool_call_ids::sanitize_name(&call.name)),
            input: Some(ensure_object(&call.params)),
            ..Block::default()
        }))
    }));
    content
}

/// The blocks that this provider wants back, only from itself and unchanged.
fn echoed_blocks(provider: &str, message: &Message) -> Vec<Box<RawValue>> {
    let Some(raw) = &message.provider else { return Vec::new() };
    match serde_json::from_str::<EchoedBlocks<'_>>(raw.get()) {
        Ok(kept) if kept.kind == super::BLOCK_KIND && kept.provider == provider => {
            kept.blocks.into_iter().map(ToOwned::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

fn tool_result(message: &Message) -> Block<'_> {
    let mut content = attachment_blocks(message);
    if !message.content.trim().is_empty() {
        content.push(text_block(&*message.content));
    }
    Block {
        kind: "tool_result",
        tool_use_id: Some(tool_call_ids::sanitize_id(
            message.tool_call_id.as_deref().unwrap_or_default(),
            IdForm::Plain,
        )),
        content: Some(content).filter(|content| !content.is_empty()),
        is_error: message.is_error,
        ..Block::default()
    }
}
